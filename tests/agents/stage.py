"""The real pipelines of all APIs with a real store, between a session and a model on loopback."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proxy.assembly import build_models
from proxy.exchange import Call
from proxy.store.queries import facts
from proxy.tokens import Counter
from tests.agents.session import Request
from tests.builders import count
from tests.contract.world import Sink
from tests.fake_model import FakeModel, Reply
from tests.running import Running


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
        running = Running.start(folder, model.url, Counter(count))
        models = build_models(running.parts)
        played = []
        try:
            for request in requests:
                model.say(Reply(body=request.reply))
                sink = Sink()
                headers = (*request.headers.items(), ("authorization", "Bearer k"))
                async with asyncio.timeout(20):
                    await models[request.path].handle(Call("POST", request.path, headers, request.body), sink)
                played.append(Played(request, model.seen[-1].body, sink.status, running.newest_receipt()))
            found = tuple(fact["text"] for fact in facts(running.parts.store._db, {})["facts"])
        finally:
            await running.close()
        return Outcome(tuple(played), found)
