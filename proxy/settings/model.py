"""The settings: what can be set, in which range, and with which default.

`config/goalkeeper.yaml` holds the same keys with a word on each; `loading.py` fills them.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError
from pydantic_settings import BaseSettings, SettingsConfigDict

from proxy.settings.routes import CHAT_PATH, checked_key, hidden, is_path


def is_loopback(host: str) -> bool:
    """Whether only programs on this machine can reach a socket bound to this host."""
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _root(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("must be a URL like https://api.openai.com")
    if parts.query or parts.fragment:
        raise ValueError("must be a URL without query and fragment")
    if parts.username is not None:
        raise ValueError("must be a URL without user and password: clients bring their own credentials")
    return url.rstrip("/").removesuffix("/v1").rstrip("/")


Positive = Annotated[int, Field(gt=0)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Share = Annotated[float, Field(gt=0, le=1)]
Root = Annotated[str, AfterValidator(_root)]


class Group(BaseModel):
    """A group of settings: frozen, and deaf to keys it doesn't know."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class Server(Group):
    """Where Goalkeeper listens."""

    host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8787
    token: Annotated[str, Field(min_length=1)] | None = None
    max_body_bytes: Positive = 64 << 20

    @model_validator(mode="after")
    def _open_doors_need_a_key(self) -> Server:
        if self.token is None and not is_loopback(self.host):
            raise ValueError(f"host {self.host} can be reached from outside: set server.token, or bind to 127.0.0.1")
        return self


class Upstream(Group):
    """The model's API."""

    url: Root = "https://api.openai.com"
    connect_timeout_seconds: Seconds = 10
    response_timeout_seconds: Seconds = 600


class Route(Group):
    """Where the models under one glob, or the requests under one path, go."""

    url: Root | None = None
    provider: Literal["http", "litellm"] = "http"
    model: str | None = None  # the name under which litellm knows it; default: the request's own

    @model_validator(mode="after")
    def _http_needs_an_address(self) -> Route:
        if self.provider == "http" and self.url is None:
            raise ValueError("a route over http needs a url, like https://api.anthropic.com")
        return self


def _reachable(routes: Mapping[str, Route]) -> Mapping[str, Route]:
    """Refuses routes that can't work, each at the line of its key."""
    wrong = [
        (key, f"no request gets here: '{cover}' above takes them all; put this one first")
        for key, cover in hidden(routes)
    ]
    wrong += [
        (key, f"litellm takes chat completions only: write {CHAT_PATH}, or the models' names")
        for key, route in routes.items()
        if route.provider == "litellm" and is_path(key) and key != CHAT_PATH
    ]
    if wrong:
        details = [InitErrorDetails(type=_mistake(told), loc=(key,), input=routes) for key, told in wrong]
        raise ValidationError.from_exception_data("routes", details)
    return routes


def _mistake(told: str) -> PydanticCustomError:
    return PydanticCustomError("route", "{told}", {"told": told})


RouteKey = Annotated[str, AfterValidator(checked_key)]
Routes = Annotated[Mapping[RouteKey, Route], AfterValidator(_reachable)]


class ModelLimits(Group):
    """Window and budget of the models under one glob, in tokens."""

    window: Positive | None = None
    budget: Positive | None = None


class Pins(Group):
    """Pin rules and the room for pinned text."""

    max_tokens: Positive | None = None
    marker: Annotated[str, Field(min_length=1)] = "!"
    files: tuple[Path, ...] = (Path("pins.yaml"),)
    rules: tuple[dict[str, Any], ...] = ()


class Summarizer(Group):
    """Model-written summaries in the work log."""

    when: Literal["never", "background", "inline"] = "never"
    model: str | None = None
    timeout_seconds: Seconds = 20
    max_tokens: Positive = 1024


class Reasoning(Group):
    """How signed reasoning is kept valid through our own compaction."""

    compaction: Literal["off", "background"] = "off"
    timeout_seconds: Seconds = 180
    max_tokens: Positive = 8192


class Classifier(Group):
    """A model that may propose what the rules left open."""

    model: Annotated[str, Field(min_length=1)] | None = None
    provider: Literal["http", "litellm"] = "http"
    url: Root | None = None
    key_env: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")] | None = None
    pin: bool = False
    confidence: Annotated[float, Field(ge=0, le=1)] = 0.7
    requests_per_day: Positive = 200
    tokens_per_day: Positive = 200_000
    usd_per_day: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    usd_per_million_tokens: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    timeout_seconds: Seconds = 30
    max_tokens: Positive = 512


class Overflow(Group):
    """What happens when the upstream says that a body is too long."""

    retry: bool = True


class Repair(Group):
    """What is mended of the client's own mistakes."""

    orphan_tool_results: Literal["off", "to_text"] = "off"


class Stream(Group):
    """How open streams are kept alive."""

    keepalive_seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 15
    early_open: bool = False


class Clients(Group):
    """What users add to the client profiles."""

    folders: tuple[Path, ...] = ()
    ignore_tags: tuple[str, ...] = ()
    answer_tools: tuple[str, ...] = ()
    denial_patterns: tuple[str, ...] = ()


class Facts(Group):
    """Recall of promoted facts in later sessions."""

    recall: bool = False
    scope: Literal["session", "project"] = "session"
    recall_tokens: Positive = 1000


class Redaction(Group):
    """Secret values on disk, and what leads to people."""

    enabled: bool = True
    people: bool = False


class Receipts(Group):
    """What receipts keep."""

    tool_output: bool = True


_KINDS = ("goal", "correction", "constraint", "preference", "decision", "commitment", "fact")
_STATUSES = ("active", "closed", "superseded", "retracted", "expired")


class Retention(Group):
    """How long and how much is kept: the archive, and facts by kind and status."""

    archive_days: Positive = 30
    archive_bytes: Positive = 2_000_000_000
    facts_days: Mapping[str, Positive] = {}
    facts_bytes: Positive = 200_000_000

    @field_validator("facts_days")
    @classmethod
    def _kinds_and_statuses(cls, days: Mapping[str, int]) -> Mapping[str, int]:
        for name in days:
            kind, slash, status = name.partition("/")
            if not (kind in _KINDS and status in _STATUSES if slash else kind in (*_KINDS, *_STATUSES)):
                kinds, statuses = ", ".join(_KINDS), ", ".join(_STATUSES)
                raise ValueError(f"{name!r} must be a kind ({kinds}), a status ({statuses}) or KIND/STATUS")
        return days


class Settings(BaseSettings):
    """All settings of one proxy."""

    model_config = SettingsConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, env_prefix="GOALKEEPER_", env_nested_delimiter="__"
    )

    server: Server = Server()
    upstream: Upstream = Upstream()
    data: Path = Path("~/.local/share/goalkeeper")
    mode: Literal["full", "restore", "observe"] = "full"
    budget: Positive | None = None
    trigger: Share = 0.9
    target: Annotated[float, Field(gt=0, lt=1)] = 0.5
    keep_recent: Annotated[float, Field(ge=0, lt=1)] = 0.25
    history: Literal["all", "short", "off"] = "all"
    window: Positive | None = None
    models: Mapping[str, ModelLimits] = {}
    routes: Routes = {}
    strict_roles: bool = False
    pins: Pins = Pins()
    summarizer: Summarizer = Summarizer()
    reasoning: Reasoning = Reasoning()
    classifier: Classifier = Classifier()
    overflow: Overflow = Overflow()
    assist: bool = False
    usage: Literal["upstream", "client"] = "upstream"
    on_failure: Literal["forward", "refuse"] = "forward"
    repair: Repair = Repair()
    stream: Stream = Stream()
    clients: Clients = Clients()
    tenant: Annotated[str, Field(pattern=r"^(authorization|none|header:[A-Za-z0-9-]+)$")] = "authorization"
    facts: Facts = Facts()
    redaction: Redaction = Redaction()
    receipts: Receipts = Receipts()
    retention: Retention = Retention()

    def limits_of(self, model: str) -> ModelLimits:
        """Gives window and budget for a model: those of the first glob that it matches, else the general ones."""
        own = next((limits for glob, limits in self.models.items() if fnmatchcase(model, glob)), ModelLimits())
        return ModelLimits(window=own.window or self.window, budget=own.budget or self.budget)

    @model_validator(mode="after")
    def _recent_fits_into_target(self) -> Settings:
        if self.keep_recent >= self.target:
            raise ValueError(f"keep_recent ({self.keep_recent:g}) must be less than target ({self.target:g})")
        return self
