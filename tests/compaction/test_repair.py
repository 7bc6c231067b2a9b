"""Tool results whose calls are gone: the client's own mistake, mended where the settings ask for it."""

from __future__ import annotations

import json
from typing import Any

from proxy.compaction.repair import repaired
from proxy.dialects.chat import Chat
from proxy.dialects.messages import Messages

MESSAGES = Messages()
CHAT = Chat()


def result(identity: str, text: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": identity, "content": text}


def call(identity: str, kind: str = "tool_use") -> dict[str, Any]:
    return {"type": kind, "id": identity, "name": "run", "input": {}}


def mended(dialect: Any, *messages: dict[str, Any]) -> list[Any] | None:
    out = repaired([dialect.message(json.dumps(message).encode()) for message in messages], dialect)
    return None if out is None else [json.loads(raw) for raw in out]


def test_an_orphan_beside_other_blocks_becomes_a_text_and_the_rest_stays() -> None:
    asked = {"role": "assistant", "content": [call("t2")]}
    words = {"type": "text", "text": "and now?"}
    answer = {"role": "user", "content": [result("t1", "lost"), result("t2", "ok"), words]}
    out = mended(MESSAGES, {"role": "user", "content": "go"}, asked, answer)
    assert out is not None
    first, second, third = out[2]["content"]
    assert first == result("t2", "ok")
    assert second["type"] == "text"
    assert "lost" in second["text"]
    assert third == words


def test_results_of_the_providers_own_tools_stand_beside_their_calls() -> None:
    found = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}
    content = [call("s1", "server_tool_use"), found, call("t1")]
    asked = {"role": "assistant", "content": content}
    assert mended(MESSAGES, asked, {"role": "user", "content": [result("t1", "ok")]}) is None


def test_an_orphan_of_chat_becomes_a_message_of_the_user() -> None:
    out = mended(CHAT, {"role": "user", "content": "go"}, {"role": "tool", "tool_call_id": "t", "content": "lost"})
    assert out is not None
    assert out[1]["role"] == "user"
    assert "lost" in out[1]["content"]
