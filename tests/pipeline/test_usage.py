"""What an agent reads of its own size when Goalkeeper made the body shorter."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from proxy.pipeline.usage import RaisedUsage
from tests.builders import GOAL, SYSTEM, call, result, says, user
from tests.contract.world import Done, World
from tests.contract.world import Sink as Heard

HEADERS = (("authorization", "Bearer k1"),)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "data", budget=4_000, usage="client")
    yield made
    made.close()


def sent(world: World, steps: int, *, stream: bool) -> Done:
    talk: list[dict[str, Any]] = [SYSTEM, user(GOAL)]
    for step in range(steps):
        talk += [says("", call(f"c{step}", path=f"{step}.py")), result(f"c{step}", f"{step} " + "x" * 3_000)]
    body = {"model": "demo", "messages": talk, "stream": stream}
    return world.send(json.dumps(body).encode(), HEADERS, says("go on"))


@pytest.mark.parametrize("stream", [False, True])
def test_a_rewritten_request_reports_the_clients_own_size_and_one_that_was_not_is_untouched(world, stream):
    small = sent(world, 1, stream=stream)
    assert small.sink.data == small.reply
    assert "usage_raised" not in small.flags
    cut = sent(world, 6, stream=stream)
    assert "usage_raised" in cut.flags
    real = world.size_of(cut.forwarded)
    told = cut.receipt["tokens_in"] - cut.receipt["tokens_out"] + real
    assert cut.receipt["prompt_tokens"] == real
    assert told > 2 * real
    assert cut.sink.data == cut.reply.replace(f'"prompt_tokens": {real}'.encode(), f'"prompt_tokens": {told}'.encode())
    assert cut.sink.data != cut.reply


def test_an_event_that_comes_in_pieces_is_raised_when_it_is_whole_and_others_are_not_held_back():
    async def written(*chunks: bytes) -> list[bytes]:
        heard = Heard()
        sink = RaisedUsage(heard, 100)
        await sink.open(200, [("Content-Type", "text/event-stream")])
        seen = []
        for chunk in chunks:
            await sink.write(chunk)
            seen.append(heard.data)
        await sink.close()
        return [*seen, heard.data]

    first, usage = b'data: {"a":1}\n\n', b'data: {"usage":{"prompt_tokens":5}}\n\n'
    seen = asyncio.run(written(first + usage[:12], usage[12:30], usage[30:], b"data: [DONE]"))
    raised = usage.replace(b":5}", b":105}")
    assert seen == [first, first, first + raised, first + raised, first + raised + b"data: [DONE]"]
