"""Cache marks: where ours stands, and whose gives way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from proxy.compaction.cachemarks import MOST, marked
from proxy.compaction.insertion import Insertion
from proxy.compaction.rewrite import Piece
from proxy.dialects.messages import Messages
from tests.signing import Agent, SigningModel, proxied

DIALECT = Messages()
MARK = {"type": "ephemeral"}
BLOCK = "[goalkeeper 2/2: record of turns 2-9]"


def text(words: str, **fields: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **fields}


def said(*blocks: dict[str, Any], role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": list(blocks)}


def block(identity: str = "b1", words: str = BLOCK) -> Insertion:
    return Insertion(identity, "br", 1, 3, "", "into_previous", words, "compaction")


def with_marks(*messages: dict[str, Any], **fields: Any) -> list[dict[str, Any]]:
    """Marks a body whose first message carries block b1."""
    transcript = DIALECT.parse(json.dumps({"model": "m", "messages": messages, **fields}).encode())
    raws = [message.raw for message in transcript.messages]
    pieces = [Piece(raw, "user", None, ("b1",) if place == 0 else ()) for place, raw in enumerate(raws)]
    return [json.loads(raw) for raw in marked(raws, pieces, (block(),), transcript)]


def marks(value: Any) -> int:
    """Counts all marks in a JSON value."""
    if isinstance(value, list):
        return sum(map(marks, value))
    if isinstance(value, dict):
        return ("cache_control" in value) + sum(map(marks, value.values()))
    return 0


def test_the_block_carries_a_mark_and_nothing_else_changes() -> None:
    first, second = said(text("goal"), text(BLOCK)), said(text("ok"), role="assistant")
    assert with_marks(first, second) == [said(text("goal"), text(BLOCK, cache_control=MARK)), second]


def test_without_a_block_no_mark_is_set() -> None:
    transcript = DIALECT.parse(json.dumps({"messages": [said(text("goal"))]}).encode())
    raws = [message.raw for message in transcript.messages]
    assert marked(raws, [Piece(raws[0], "user", transcript.messages[0])], (), transcript) == raws


def test_only_the_newest_block_carries_a_mark() -> None:
    message = said(text("goal"), text("older"), text(BLOCK))
    transcript = DIALECT.parse(json.dumps({"messages": [message]}).encode())
    raw = transcript.messages[0].raw
    both = (block("b0", "older"), block())
    (out,) = marked([raw], [Piece(raw, "user", None, ("b0", "b1"))], both, transcript)
    assert json.loads(out) == said(text("goal"), text("older"), text(BLOCK, cache_control=MARK))


def test_where_the_client_uses_all_marks_its_oldest_one_in_the_messages_gives_way() -> None:
    result = {"type": "tool_result", "tool_use_id": "t", "content": [text("12 passed", cache_control=MARK)]}
    system = [text("a", cache_control=MARK), text("b", cache_control=MARK)]
    messages = [said(text("goal"), text(BLOCK)), said(result), said(text("new", cache_control=MARK))]
    out = with_marks(*messages, system=system)
    assert marks(out) + marks(system) == MOST
    assert marks(out[0]) == 1
    assert marks(out[1]) == 0
    assert out[2] == messages[2]


def test_marks_outside_the_messages_never_give_way() -> None:
    system = [text(str(number), cache_control=MARK) for number in range(3)]
    tools = [{"name": "read_file", "cache_control": MARK}]
    assert marks(with_marks(said(text("goal"), text(BLOCK)), system=system, tools=tools)) == 0


def test_the_automatic_mark_of_a_body_counts_too() -> None:
    system = [text("a", cache_control=MARK), text("b", cache_control=MARK)]
    messages = [said(text("goal"), text(BLOCK)), said(text("new", cache_control=MARK))]
    out = with_marks(*messages, system=system, cache_control=MARK)
    assert [marks(message) for message in out] == [1, 0]


def test_a_mark_before_one_that_lives_an_hour_lives_as_long() -> None:
    long = {"type": "ephemeral", "ttl": "1h"}
    out = with_marks(said(text("goal"), text(BLOCK)), said(text("new", cache_control=long)))
    assert out[0]["content"][1]["cache_control"] == long


def test_the_words_cache_control_in_a_call_are_no_mark() -> None:
    call = {"type": "tool_use", "id": "t", "name": "edit", "input": {"cache_control": MARK}}
    filled = [text(str(number), cache_control=MARK) for number in range(3)]
    out = with_marks(said(text("goal"), text(BLOCK)), said(call, role="assistant"), system=filled)
    assert out[0]["content"][1]["cache_control"] == MARK
    assert out[1] == said(call, role="assistant")


async def test_every_request_behind_a_cut_carries_the_mark_and_at_most_four(tmp_path: Path) -> None:
    async with proxied(tmp_path, SigningModel(), budget=6_000) as proxy:
        agent = Agent()
        agent.say("Port the billing service to Go.")
        agent.fields["system"] = [text("a", cache_control=MARK), text("b", cache_control=MARK)]
        done = []
        for _ in range(13):
            for message in agent.messages:
                for one in message["content"]:
                    one.pop("cache_control", None)
            for message in [message for message in agent.messages if message["role"] == "user"][-2:]:
                message["content"][-1]["cache_control"] = MARK
            done += await proxy.work(agent, 1, size=2_500)
        behind = [sent for sent in done if sent.receipt["insertions"]]
        assert len(behind) > 2
        for sent in behind:
            assert marks(sent.body) == MOST
            assert sent.body["messages"][0]["content"][-1]["cache_control"] == MARK
        assert proxy.model.refusals == 0
        assert proxy.problems() == []
