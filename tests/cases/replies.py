"""What the fake model says when a case doesn't say it: the text "ok" in the dialect of the path, without usage.

No usage is given on purpose: an invented figure would teach the proxy's token calibration something untrue.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

TEXT = "ok"
DONE = "data: [DONE]\n\n"


@dataclass(frozen=True, slots=True)
class Stream:
    """The events of one streamed answer."""

    head: tuple[str, ...]
    deltas: tuple[str, ...]
    tail: tuple[str, ...]


def dialect_of(path: str) -> str:
    """Gives the dialect of a path: chat, responses, messages; chat for what nobody knows."""
    route = path.partition("?")[0].rstrip("/")
    return next((name for name in ("responses", "messages") if route.endswith(f"/{name}")), "chat")


def is_model_call(path: str) -> bool:
    """Tells whether a path is one of the three dialects' own, so that the proxy writes a receipt for it."""
    return path.partition("?")[0].rstrip("/").endswith(("/chat/completions", "/responses", "/messages"))


def json_reply(method: str, path: str, body: bytes) -> Any:
    """Gives the whole answer to a request that doesn't stream."""
    route = path.partition("?")[0].rstrip("/")
    if method == "GET":
        model = {"id": "demo-1", "object": "model", "owned_by": "fake"}
        return {"object": "list", "data": [model]} if route.endswith("/models") else {"text": TEXT}
    if route.endswith(("/count_tokens", "/input_tokens")):
        return {"input_tokens": len(body) // 4}
    text = {"type": "output_text", "text": TEXT, "annotations": []}
    answers = {
        "chat": {
            "id": "fake-1",
            "object": "chat.completion",
            "created": 1,
            "model": "demo-1",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": TEXT}, "finish_reason": "stop"}],
        },
        "responses": {
            "id": "resp_fake1",
            "object": "response",
            "status": "completed",
            "model": "demo-1",
            "output": [{"type": "message", "id": "msg_fake1", "role": "assistant", "content": [text]}],
        },
        "messages": {
            "id": "msg_fake1",
            "type": "message",
            "role": "assistant",
            "model": "demo-1",
            "content": [{"type": "text", "text": TEXT}],
            "stop_reason": "end_turn",
        },
    }
    return answers[dialect_of(path)]


def error_reply(status: int) -> Any:
    """Gives the body of an error that a case names only by its status."""
    return {"error": {"message": f"the fake model answers {status}", "type": "fake_error"}}


def stream_of(path: str, texts: Sequence[str] = (TEXT,)) -> Stream:
    """Gives a streamed answer of these pieces of text, in the dialect of the path."""
    return {"chat": _chat, "responses": _responses, "messages": _messages}[dialect_of(path)](texts)


def _chat(texts: Sequence[str]) -> Stream:
    return Stream((), tuple(_chunk({"content": text}, None) for text in texts), (_chunk({}, "stop"), DONE))


def _chunk(delta: Mapping[str, Any], finish: str | None) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return _event({"id": "fake-1", "object": "chat.completion.chunk", "model": "demo-1", "choices": [choice]}, "")


def _responses(texts: Sequence[str]) -> Stream:
    output = [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "".join(texts)}]}]
    response = {"id": "resp_fake1", "object": "response", "model": "demo-1"}
    return Stream(
        head=_events([{"type": "response.created", "response": {**response, "status": "in_progress", "output": []}}]),
        deltas=_events({"type": "response.output_text.delta", "output_index": 0, "delta": text} for text in texts),
        tail=_events(
            [{"type": "response.completed", "response": {**response, "status": "completed", "output": output}}]
        ),
    )


def _messages(texts: Sequence[str]) -> Stream:
    message = {"id": "msg_fake1", "type": "message", "role": "assistant", "model": "demo-1", "content": []}
    start = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    return Stream(
        head=_events([{"type": "message_start", "message": message}, start]),
        deltas=_events(
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}} for text in texts
        ),
        tail=_events(
            [
                {"type": "content_block_stop", "index": 0},
                {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
                {"type": "message_stop"},
            ]
        ),
    )


def _events(values: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    return tuple(_event(value, f"event: {value['type']}\n") for value in values)


def _event(value: Mapping[str, Any], head: str) -> str:
    return f"{head}data: {json.dumps(value, ensure_ascii=False)}\n\n"
