"""The real pipelines of all APIs with a real store, between a session and a model on loopback."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from proxy.assembly import Parts, build_models
from proxy.exchange import Call
from proxy.redaction import Sealer
from proxy.settings import Settings
from proxy.store.queries import facts, receipt
from proxy.store.rows import Batch
from proxy.store.sqlite import Store
from proxy.telemetry import Counters, Log
from proxy.tokens import Counter
from proxy.upstream import Upstream
from tests.agents.session import Request
from tests.builders import PROFILES, RULES, count
from tests.contract.world import Sink
from tests.fake_model import FakeModel, Reply


@dataclass(frozen=True)
class Played:
    """One request as the model got it, and its receipt."""

    request: Request
    forwarded: bytes
    status: int
    receipt: dict[str, Any]


@dataclass(frozen=True)
class Outcome:
    """A session that was played, and what Goalkeeper took for the user's binding words."""

    played: tuple[Played, ...]
    facts: tuple[str, ...]


def play(requests: list[Request], folder: Path) -> Outcome:
    """Sends all requests of a session, one after the other."""
    return asyncio.run(_play(requests, folder))


async def _play(requests: list[Request], folder: Path) -> Outcome:
    async with FakeModel() as model:
        settings = Settings(upstream={"url": model.url}, data=folder)
        upstream, seal, log = Upstream(model.url), Sealer(b"k" * 32), Log(StringIO())
        store = Store.open(folder, seal)
        models = build_models(
            Parts(settings, upstream, store, seal, b"k" * 32, RULES, PROFILES, Counter(count), Counters(), log)
        )
        played = []
        try:
            for request in requests:
                model.say(Reply(body=request.reply))
                sink = Sink()
                headers = (*request.headers.items(), ("authorization", "Bearer k"))
                async with asyncio.timeout(20):
                    await models[request.path].handle(Call("POST", request.path, headers, request.body), sink)
                store.submit(Batch()).result()
                played.append(Played(request, model.seen[-1].body, sink.status, receipt(store._db, "last")))
            found = tuple(fact["text"] for fact in facts(store._db, {})["facts"])
        finally:
            await upstream.close()
            store.close()
            log.close()
        return Outcome(tuple(played), found)
