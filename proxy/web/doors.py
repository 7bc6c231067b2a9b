"""Goalkeeper's own doors beside /v1: health, readiness, metrics, and what it knows as JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hmac import compare_digest
from urllib.parse import parse_qsl

import msgspec

from proxy.errors import BadRequest, ForbiddenHost, NotFound, Unauthorized
from proxy.settings import is_loopback
from proxy.settings.model import Server
from proxy.telemetry import Counters

Query = Mapping[str, str]
Lister = Callable[[Query], object]
Shower = Callable[[str], object]

JSON = "application/json"
WILDCARDS = ("0.0.0.0", "::", "[::]")  # noqa: S104 (compared with, not bound to)


class Page(msgspec.Struct, frozen=True):
    """What a door answers."""

    status: int
    content_type: str
    body: bytes


@dataclass(slots=True)
class Readiness:
    """What must be there before requests are treated in full, and what is loaded when it is first needed."""

    parts: dict[str, bool] = field(default_factory=dict)
    lazy: dict[str, Callable[[], bool]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    @property
    def ready(self) -> bool:
        """Whether every part is there."""
        return all(self.parts.values())


class Doors(msgspec.Struct, frozen=True):
    """Answers everything that isn't the model's API, after looking at Host and token."""

    server: Server
    readiness: Readiness
    counters: Counters
    lists: Mapping[str, Lister] = {}  # /admin/NAME?…
    items: Mapping[str, Shower] = {}  # /admin/NAME/ID

    def answer(self, method: str, target: str, host: str, authorization: str) -> Page:
        """Answers one request. Raises ForbiddenHost, Unauthorized, NotFound, BadRequest."""
        self._check(host, authorization)
        path, _, query = target.partition("?")
        if method not in ("GET", "HEAD"):
            raise BadRequest(f"{path} can only be read (GET)")
        if path == "/healthz":
            return Page(200, "text/plain", b"ok\n")
        if path == "/readyz":
            return self._readyz()
        if path == "/metrics":
            return Page(200, "text/plain; version=0.0.4", self.counters.render().encode())
        return _json(200, self._look_up(path, dict(parse_qsl(query))))

    def _check(self, host: str, authorization: str) -> None:
        wildcard = self.server.host in WILDCARDS  # reached under any name; then the token alone decides
        name = _without_port(host)
        if not wildcard and name != self.server.host and not is_loopback(name):
            raise ForbiddenHost("this door answers to the name it is bound to, not to the Host that was sent")
        if self.server.token is not None:
            wanted = f"Bearer {self.server.token}"
            if not compare_digest(authorization.encode(errors="replace"), wanted.encode()):
                raise Unauthorized("this door needs the header Authorization: Bearer TOKEN")

    def _readyz(self) -> Page:
        state = {
            "ready": self.readiness.ready,
            "parts": self.readiness.parts,
            "loaded": {name: loaded() for name, loaded in self.readiness.lazy.items()},
            "warnings": self.readiness.warnings,
        }
        return _json(200 if self.readiness.ready else 503, state)

    def _look_up(self, path: str, query: Query) -> object:
        match path.split("/"):
            case ["", "admin", name] if name in self.lists:
                return self.lists[name](query)
            case ["", "admin", name, item] if name in self.items and item:
                return self.items[name](item)
        raise NotFound(f"there is nothing at {path}; doors: {', '.join(self.names)}")

    @property
    def names(self) -> Sequence[str]:
        """The paths that can be asked for."""
        return ("/healthz", "/readyz", "/metrics", *(f"/admin/{name}" for name in self.lists))


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0].lower()


def _json(status: int, value: object) -> Page:
    return Page(status, JSON, msgspec.json.encode(value))
