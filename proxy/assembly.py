"""Puts the parts together: settings → rules, profiles, store → pipeline, doors."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial

import msgspec

from proxy.clients import Profiles
from proxy.dialects.base import Dialect
from proxy.dialects.chat import Chat
from proxy.dialects.known import all_dialects
from proxy.exchange import Exchange, PassThrough
from proxy.pins.rules import RuleSet
from proxy.pipeline.calibration import Calibrations, Known
from proxy.pipeline.classifying import Classifier, Way
from proxy.pipeline.conversation import Conversations
from proxy.pipeline.journal import Journal
from proxy.pipeline.pipeline import Equipment, Pipeline
from proxy.pipeline.routing import RoutedPassing, Routing, Sender
from proxy.providers import Litellm
from proxy.redaction import Sealer
from proxy.reloading import Reloading
from proxy.settings import Settings
from proxy.settings.model import Route
from proxy.store.keys import key_path, load_key
from proxy.store.retention import FactPolicy, Purged, purge
from proxy.store.schema import attach
from proxy.store.sqlite import Store
from proxy.telemetry import Counters, Log
from proxy.tokens import Counter
from proxy.upstream import Upstream
from proxy.web import admin
from proxy.web.doors import Doors, Readiness

MODEL_PATHS = {
    "/v1/chat/completions": "chat",
    "/v1/messages": "messages",
    "/v1/responses": "responses",
    "/v1/responses/compact": "responses",  # passes untouched; its answer is what the client goes on with
}


class Parts(msgspec.Struct, frozen=True):
    """Everything that a pipeline is made of."""

    settings: Settings
    upstream: Upstream
    store: Store
    seal: Sealer
    key: bytes  # of the store's secrets, and of what is derived from them
    rules: RuleSet
    profiles: Profiles
    counter: Counter
    counters: Counters
    log: Log
    classifying: Sender | None = None  # the classifier's own way to its model, None where it takes the routes


class Assembly(msgspec.Struct, frozen=True):
    """What stands behind the gate; `purge` forgets what retention no longer allows to keep."""

    models: Mapping[str, Exchange]  # by path
    passing: Exchange  # for all else that is an upstream's
    doors: Doors
    upstreams: tuple[Upstream, ...]  # of the routes; to be closed at the end
    purge: Callable[[], Future[Purged]]
    watch: Callable[[], None]  # begins to look for changed rule files and profiles; needs the running loop
    close: Callable[[], None]


def build_models(parts: Parts, routing: Routing | None = None) -> Mapping[str, Pipeline]:
    """Gives what answers model requests, by path."""
    routing = routing or Routing(parts.upstream)
    known: Known = {}
    pipelines = {
        name: build_pipeline(parts, dialect, _calibrations(parts, routing, dialect.path, known), routing)
        for name, dialect in all_dialects().items()
    }
    return {path: pipelines[name] for path, name in MODEL_PATHS.items()}


def build_pipeline(
    parts: Parts,
    dialect: Dialect | None = None,
    calibrations: Calibrations | None = None,
    routing: Routing | None = None,
) -> Pipeline:
    """Gives what answers model requests of one dialect, by default chat completions."""
    settings, dialect = parts.settings, dialect or Chat()
    routing = routing or Routing(parts.upstream)
    conversations = Conversations(
        store=parts.store,
        profiles=parts.profiles,
        rules=parts.rules,
        counter=parts.counter,
        dialect=dialect,
        tenancy=settings.tenant,
        key=parts.key,
    )
    return Pipeline(
        Equipment(
            settings=settings,
            dialect=dialect,
            conversations=conversations,
            routing=routing,
            calibrations=calibrations or _calibrations(parts, routing, dialect.path, {}),
            counter=parts.counter,
            counters=parts.counters,
            journal=Journal(
                parts.store, parts.log, parts.counters, parts.seal, tool_output=settings.receipts.tool_output
            ),
            seal=parts.seal,
            classifier=_classifier(parts, dialect, routing),
        )
    )


def _classifier(parts: Parts, dialect: Dialect, routing: Routing) -> Classifier | None:
    """Gives what asks a model about open turns; on the same upstream it asks with the request's own credentials."""
    settings = parts.settings.classifier
    if settings.model is None:
        return None
    key = os.environ.get(settings.key_env, "") if settings.key_env else ""
    if parts.classifying is not None:
        way = Way(parts.classifying, Chat(), key or None)
    else:
        way = Way(routing.sender(settings.model), dialect, key or None, passes_credentials=not settings.key_env)
    return Classifier(settings, way, parts.store, parts.seal, parts.counters)


def _calibrations(parts: Parts, routing: Routing, path: str, known: Known) -> Calibrations:
    settings = parts.settings

    def upstream_of(model: str) -> str:
        place = routing.place(model, path)
        route = settings.routes.get(place)
        return (route.url or f"litellm {place}") if route else settings.upstream.url

    return Calibrations(parts.store, upstream_of, known)


def open_upstream(settings: Settings, url: str | None = None) -> Upstream:
    """Opens the way to a model API, by default the settings' own."""
    limits = settings.upstream
    return Upstream(
        url or limits.url,
        connect_seconds=limits.connect_timeout_seconds,
        silence_seconds=limits.response_timeout_seconds,
    )


def assemble(settings: Settings, upstream: Upstream, log: Log) -> Assembly:
    """Loads what the settings name and builds all parts. Raises ConfigError, StoreError."""
    counter, counters = Counter(), Counters()
    reloading = Reloading(settings, log, counters)
    rules, profiles = reloading.guides.rules, reloading.guides.profiles
    key = load_key(key_path(os.environ), os.environ)
    seal = Sealer(key, enabled=settings.redaction.enabled, people=settings.redaction.people)
    log.mask = seal.mask
    store = Store.open(settings.data, seal, lambda error: log.error("not_stored", exc_info=error))
    readiness = Readiness({"rules": True, "profiles": True, "store": True}, {"vocabulary": lambda: counter.ready})
    reading = attach(settings.data)
    asking = _asking(settings)
    parts = Parts(settings, upstream, store, seal, key, rules, profiles, counter, counters, log, asking)
    others = _others(settings)
    routing = Routing(upstream, {key: _sender(one, upstream, others) for key, one in settings.routes.items()})
    models = build_models(parts, routing)
    passing = RoutedPassing(routing) if settings.routes else PassThrough(upstream)
    lists = {**admin.lists(reading), "rules": reloading.told}
    doors = Doors(settings.server, readiness, counters, lists, admin.items(reading))

    kept = settings.retention
    policy = FactPolicy(kept.facts_days, kept.facts_bytes)
    forget = partial(purge, days=kept.archive_days, max_bytes=kept.archive_bytes, facts=policy)

    def watch() -> None:
        reloading.start(dict.fromkeys(models.values()), readiness.warnings, seal.mask)

    def close() -> None:
        reloading.close()
        reading.close()
        store.close()

    opened = (*others.values(), asking) if isinstance(asking, Upstream) else tuple(others.values())
    return Assembly(models, passing, doors, opened, lambda: store.run(forget), watch, close)


def _others(settings: Settings) -> dict[str, Upstream]:
    """Opens each upstream of the routes once, however many routes lead to it."""
    urls = {one.url for one in settings.routes.values() if one.provider == "http" and one.url}
    return {url: open_upstream(settings, url) for url in urls - {settings.upstream.url}}


def _sender(route: Route, default: Upstream, others: Mapping[str, Upstream]) -> Sender:
    if route.provider == "litellm":
        return Litellm(model=route.model, url=route.url)
    return others.get(route.url or "", default)


def _asking(settings: Settings) -> Sender | None:
    """Opens the classifier's own way to its model, where the settings name one."""
    asked = settings.classifier
    if asked.model is None:
        return None
    if asked.provider == "litellm":
        return Litellm(model=asked.model, url=asked.url)
    return open_upstream(settings, asked.url) if asked.url else None
