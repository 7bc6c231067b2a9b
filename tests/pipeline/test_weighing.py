"""An upstream that drops the oldest without a word: noticed by what it says to have read, and told loudly."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from proxy.assembly import build_models
from proxy.exchange import Call
from proxy.tokens import Counter
from tests.builders import count
from tests.contract.world import Sink
from tests.fake_model import FakeModel, Reply
from tests.running import Running

PATH = "/v1/chat/completions"
ROW = "row 17 of the table, sensor 4, value 12\n"


@dataclass
class Seen:
    """What came of one request."""

    receipt: dict[str, Any]
    headers: dict[str, str]


@dataclass
class Server:
    """A proxy before a server that reads `reads(tokens)` of what it is sent."""

    folder: Path
    reads: Callable[[int], dict[str, Any]]
    settings: dict[str, Any] = field(default_factory=dict)

    def run(self, *sizes: int) -> list[Seen]:
        """Sends a talk that grows by results of so many rows, one request each."""
        return asyncio.run(self._run(sizes))

    async def _run(self, sizes: tuple[int, ...]) -> list[Seen]:
        async with FakeModel() as model:
            running = Running.start(self.folder, model.url, Counter(count), **self.settings)
            try:
                return await self._talk(model, running, sizes)
            finally:
                text = running.parts.counters.render()
                self.counted = next(line for line in text.split("\n") if line.startswith("goalkeeper_truncated"))
                await running.close()
                self.log = running.log.getvalue()

    async def _talk(self, model: FakeModel, running: Running, sizes: tuple[int, ...]) -> list[Seen]:
        exchange, found = build_models(running.parts)[PATH], []
        items: list[dict[str, Any]] = [{"role": "user", "content": "Port the ledger to Rust, keep its tests."}]
        for number, size in enumerate(sizes):
            body = json.dumps({"model": "qwen3:8b", "messages": items}).encode()
            model.say(answered(number, self.reads(sum(count(item["content"] or "") for item in items))))
            sink = Sink()
            await exchange.handle(Call("POST", PATH, (("authorization", "Bearer k"),), body), sink)
            found.append(Seen(running.newest_receipt(), dict(sink.headers)))
            items.append(called(number))
            items.append({"role": "tool", "tool_call_id": f"call_{number}_9f3a1b7c", "content": ROW * size})
        return found


def called(number: int) -> dict[str, Any]:
    """The model's call."""
    function = {"name": "read", "arguments": json.dumps({"path": f"src/ledger_{number}.py"})}
    calls = [{"id": f"call_{number}_9f3a1b7c", "type": "function", "function": function}]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def answered(number: int, usage: dict[str, Any]) -> Reply:
    """The model's answer."""
    choice = {"index": 0, "message": called(number), "finish_reason": "tool_calls"}
    return Reply(body=json.dumps({"id": "chatcmpl-1", "choices": [choice], "usage": usage}).encode())


def whole(window: int) -> Callable[[int], dict[str, Any]]:
    """A server that reads so many tokens at most."""
    return lambda tokens: {"prompt_tokens": min(tokens, window)}


def flags(seen: list[Seen]) -> list[list[str]]:
    return [list(one.receipt["flags"]) for one in seen]


def test_far_less_read_than_sent_is_told_on_receipt_header_metric_and_log(tmp_path):
    server = Server(tmp_path, whole(2_050))
    seen = server.run(1_000, 1_000, 10)
    assert flags(seen) == [[], ["truncated_silently"], ["truncated_silently"]]
    assert "models (2050 tokens do fit)" in seen[1].receipt["notes"][0]
    assert [one.headers.get("x-goalkeeper-warning") for one in seen] == [None, None, "truncated_silently"]
    assert server.counted == "goalkeeper_truncated_silently_total 2"
    assert '"event": "truncated_silently", "level": "error"' in server.log


def test_a_body_that_grew_of_which_no_more_was_read_is_noticed_before_it_is_twice_as_long(tmp_path):
    seen = Server(tmp_path, whole(4_096)).run(300, 120, 60, 10)
    assert flags(seen) == [[], [], [], ["truncated_silently"]]


def test_a_guess_that_was_wrong_is_counted_before_anything_is_said(tmp_path):
    seen = Server(tmp_path, whole(10**9)).run(1_000, 1_000, 10)
    assert flags(seen) == [[], [], []]


@pytest.mark.parametrize(
    "reads",
    [
        lambda tokens: {"prompt_tokens": min(tokens, 200)},  # only the newest: what is cached isn't counted
        lambda tokens: {"prompt_tokens": 40, "prompt_tokens_details": {"cached_tokens": tokens}},  # counted apart
        lambda _: {},
    ],
)
def test_a_server_that_counts_otherwise_is_not_accused(tmp_path, reads):
    seen = Server(tmp_path, reads).run(1_000, 1_000, 10)
    assert not any("truncated_silently" in found for found in flags(seen))


def test_nothing_is_learnt_and_a_window_that_is_set_ends_it(tmp_path):
    server = Server(tmp_path, whole(4_096), {"models": {"qwen3*": {"window": 4_096}}})
    seen = server.run(100, 100, 100, 100, 100, 100)
    assert all(one.receipt["tokens_out"] <= 4_096 for one in seen)
    assert any(one.receipt["compaction"] == "compaction" for one in seen)
