"""Puts the parts together: settings → rules, profiles, store → pipeline, doors."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial

from proxy.clients import Profiles, load_profiles
from proxy.dialects.base import Dialect
from proxy.dialects.chat import Chat
from proxy.dialects.known import all_dialects
from proxy.exchange import Exchange
from proxy.pins.rules import RuleSet, load_rules
from proxy.pipeline.calibration import Calibrations
from proxy.pipeline.conversation import Conversations
from proxy.pipeline.journal import Journal
from proxy.pipeline.pipeline import Equipment, Pipeline
from proxy.redaction import Sealer
from proxy.settings import Settings, packaged_folder
from proxy.store.keys import key_path, load_key
from proxy.store.retention import Purged, purge
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


@dataclass(frozen=True, slots=True)
class Parts:
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


@dataclass(frozen=True, slots=True)
class Assembly:
    """What stands behind the gate; `purge` forgets what retention no longer allows to keep."""

    models: Mapping[str, Exchange]  # by path
    doors: Doors
    purge: Callable[[], Future[Purged]]
    close: Callable[[], None]


def build_models(parts: Parts) -> Mapping[str, Exchange]:
    """Gives what answers model requests, by path."""
    calibrations = Calibrations(parts.store, parts.settings.upstream.url)
    pipelines = {name: build_pipeline(parts, dialect, calibrations) for name, dialect in all_dialects().items()}
    return {path: pipelines[name] for path, name in MODEL_PATHS.items()}


def build_pipeline(parts: Parts, dialect: Dialect | None = None, calibrations: Calibrations | None = None) -> Exchange:
    """Gives what answers model requests of one dialect, by default chat completions."""
    settings, dialect = parts.settings, dialect or Chat()
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
            upstream=parts.upstream,
            calibrations=calibrations or Calibrations(parts.store, settings.upstream.url),
            counter=parts.counter,
            counters=parts.counters,
            journal=Journal(
                parts.store, parts.log, parts.counters, parts.seal, tool_output=settings.receipts.tool_output
            ),
        )
    )


def assemble(settings: Settings, upstream: Upstream, log: Log) -> Assembly:
    """Loads what the settings name and builds all parts. Raises ConfigError, StoreError."""
    rules = load_rules(settings.pins.files, settings.pins.rules, marker=settings.pins.marker)
    profiles = _profiles(settings)
    key = load_key(key_path(os.environ), os.environ)
    seal = Sealer(key, enabled=settings.redaction.enabled)
    store = Store.open(settings.data, seal)
    counter, counters = Counter(), Counters()
    readiness = Readiness({"rules": True, "profiles": True, "store": True}, {"vocabulary": lambda: counter.ready})
    reading = attach(settings.data)
    parts = Parts(settings, upstream, store, seal, key, rules, profiles, counter, counters, log)
    models = build_models(parts)
    doors = Doors(settings.server, readiness, counters, admin.lists(reading), admin.items(reading))

    kept = settings.retention
    forget = partial(purge, days=kept.archive_days, max_bytes=kept.archive_bytes)

    def close() -> None:
        reading.close()
        store.close()

    return Assembly(models, doors, lambda: store.run(forget), close)


def _profiles(settings: Settings) -> Profiles:
    own = settings.clients
    profiles = load_profiles([packaged_folder() / "clients", *own.folders])
    return profiles.with_settings(
        ignore_tags=own.ignore_tags, answer_tools=own.answer_tools, denial_patterns=own.denial_patterns
    )
