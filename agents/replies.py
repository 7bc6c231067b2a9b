"""Answers of the scripted model in the form of each API, streamed or whole."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_NUMBERS = itertools.count(1)
# What an item has before its content comes.
_BARE: dict[str, dict[str, Any]] = {"message": {"content": []}, "function_call": {"arguments": ""}}
_CHAT_ENDS = {True: "tool_calls", False: "stop"}
_MESSAGES_ENDS = {True: "tool_use", False: "end_turn"}


@dataclass(frozen=True, slots=True)
class Said:
    """One answer: text, at most one call, and the prompt tokens that it claims."""

    text: str = ""
    tool: str = ""
    arguments: dict[str, Any] | None = None
    prompt_tokens: int = 1000
    namespace: str = ""  # the group of tools that the called one is listed in
    compaction: bool = False  # a sealed compaction item in place of a text

    @property
    def calls(self) -> bool:
        """Whether a tool is called."""
        return bool(self.tool)


def whole(api: str, said: Said, model: str) -> bytes:
    """Gives the answer as one JSON body."""
    return json.dumps({"chat": _chat, "responses": _responses, "messages": _messages}[api](said, model)).encode()


def stream(api: str, said: Said, model: str) -> Iterator[bytes]:
    """Gives the answer as server-sent events."""
    return {"chat": _chat_stream, "responses": _responses_stream, "messages": _messages_stream}[api](said, model)


def refusal(api: str, size: int) -> tuple[int, bytes]:
    """Gives status and body with which an upstream says that the prompt is too long."""
    if api == "messages":
        words = f"prompt is too long: {size + 200_000} tokens > 200000 maximum"
        return 400, json.dumps({"type": "error", "error": {"type": "invalid_request_error", "message": words}}).encode()
    words = (
        f"This model's maximum context length is 128000 tokens. However, your messages have {size + 128_000} tokens. "
        "Please reduce the length of the messages."
    )
    error = {"message": words, "type": "invalid_request_error", "param": "messages", "code": "context_length_exceeded"}
    return 400, json.dumps({"error": error}).encode()


def compacted(model: str) -> bytes:
    """Gives the answer of /v1/responses/compact: only the sealed item, nothing of what the user said."""
    usage = {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110}
    output = [_sealed()]
    return json.dumps(
        {
            "id": _id("resp"),
            "object": "response.compaction",
            "created_at": 1,
            "model": model,
            "output": output,
            "usage": usage,
        }
    ).encode()


def _sealed() -> dict[str, Any]:
    """A compaction item; only the provider could read it, and no two are the same."""
    return {"type": "compaction", "id": _id("cmp"), "encrypted_content": _id("sealed")}


def _id(kind: str) -> str:
    return f"{kind}_{next(_NUMBERS):08x}9f2c4ab7d1"


def _event(data: object, name: str = "") -> bytes:
    return (f"event: {name}\n" if name else "").encode() + b"data: " + json.dumps(data).encode() + b"\n\n"


def _pieces(words: str, size: int = 40) -> Iterator[str]:
    return (words[at : at + size] for at in range(0, len(words), size))


# --- chat completions ------------------------------------------------------------------------------------------------


def _chat_base(kind: str, model: str) -> dict[str, Any]:
    return {"id": _id("chatcmpl"), "object": kind, "created": 1, "model": model}


def _chat_usage(said: Said) -> dict[str, int]:
    return {"prompt_tokens": said.prompt_tokens, "completion_tokens": 40, "total_tokens": said.prompt_tokens + 40}


def _chat_call(said: Said) -> dict[str, Any]:
    function = {"name": said.tool, "arguments": json.dumps(said.arguments)}
    return {"id": _id("call"), "type": "function", "function": function}


def _chat(said: Said, model: str) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": said.text or None}
    if said.calls:
        message["tool_calls"] = [_chat_call(said)]
    choice = {"index": 0, "message": message, "finish_reason": _CHAT_ENDS[said.calls]}
    return {**_chat_base("chat.completion", model), "choices": [choice], "usage": _chat_usage(said)}


def _chat_stream(said: Said, model: str) -> Iterator[bytes]:
    base = _chat_base("chat.completion.chunk", model)

    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        return _event({**base, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    yield chunk({"role": "assistant", "content": ""})
    for piece in _pieces(said.text):
        yield chunk({"content": piece})
    if said.calls:
        call = _chat_call(said)
        arguments = call["function"]["arguments"]
        yield chunk({"tool_calls": [{"index": 0, **call, "function": {"name": said.tool, "arguments": ""}}]})
        for piece in _pieces(arguments):
            yield chunk({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]})
    yield chunk({}, _CHAT_ENDS[said.calls])
    yield _event({**base, "choices": [], "usage": _chat_usage(said)})
    yield b"data: [DONE]\n\n"


# --- responses -------------------------------------------------------------------------------------------------------


def _output(said: Said) -> list[dict[str, Any]]:
    output: list[dict[str, Any]] = []
    if said.compaction:
        return [_sealed()]
    if said.text:
        part = {"type": "output_text", "text": said.text, "annotations": []}
        output.append(
            {"type": "message", "id": _id("msg"), "role": "assistant", "status": "completed", "content": [part]}
        )
    if said.calls:
        call = {
            "call_id": _id("call"),
            "name": said.tool,
            "arguments": json.dumps(said.arguments),
            "status": "completed",
        }
        grouped = {"namespace": said.namespace} if said.namespace else {}
        output.append({"type": "function_call", "id": _id("fc"), **call, **grouped})
    return output


def _responses(said: Said, model: str) -> dict[str, Any]:
    tokens, details = said.prompt_tokens, {"reasoning_tokens": 0}
    usage = {"input_tokens": tokens, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 40}
    usage |= {"output_tokens_details": details, "total_tokens": tokens + 40}
    rest: dict[str, Any] = {
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "tools": [],
    }
    rest |= {"tool_choice": "auto", "temperature": 1, "top_p": 1, "parallel_tool_calls": False, "created_at": 1}
    head = {"id": _id("resp"), "object": "response", "status": "completed", "model": model}
    return {**head, **rest, "output": _output(said), "usage": usage}


def _responses_stream(said: Said, model: str) -> Iterator[bytes]:
    full, numbers = _responses(said, model), itertools.count()

    def send(kind: str, **fields: object) -> bytes:
        return _event({"type": kind, "sequence_number": next(numbers), **fields}, kind)

    yield send("response.created", response={**full, "status": "in_progress", "output": [], "usage": None})
    for place, item in enumerate(full["output"]):
        at = {"output_index": place, "item_id": item["id"]}
        bare = _BARE.get(item["type"], {})
        yield send("response.output_item.added", output_index=place, item={**item, "status": "in_progress", **bare})
        if item["type"] == "message":
            part = item["content"][0]
            yield send("response.content_part.added", **at, content_index=0, part={**part, "text": ""})
            yield send("response.output_text.delta", **at, content_index=0, delta=said.text)
            yield send("response.output_text.done", **at, content_index=0, text=said.text)
            yield send("response.content_part.done", **at, content_index=0, part=part)
        elif item["type"] == "function_call":
            yield send("response.function_call_arguments.delta", **at, delta=item["arguments"])
            yield send("response.function_call_arguments.done", **at, arguments=item["arguments"])
        yield send("response.output_item.done", output_index=place, item=item)
    yield send("response.completed", response=full)


# --- messages --------------------------------------------------------------------------------------------------------


def _blocks(said: Said) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = [{"type": "text", "text": said.text}] if said.text else []
    if said.calls:
        blocks.append({"type": "tool_use", "id": _id("toolu"), "name": said.tool, "input": said.arguments})
    return blocks


def _messages(said: Said, model: str) -> dict[str, Any]:
    usage = {"input_tokens": said.prompt_tokens, "output_tokens": 40}
    usage |= {"cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    head = {"id": _id("msg"), "type": "message", "role": "assistant", "model": model, "content": _blocks(said)}
    return {**head, "stop_reason": _MESSAGES_ENDS[said.calls], "stop_sequence": None, "usage": usage}


def _messages_stream(said: Said, model: str) -> Iterator[bytes]:
    full = _messages(said, model)

    def send(kind: str, **fields: object) -> bytes:
        return _event({"type": kind, **fields}, kind)

    begun = {**full, "content": [], "stop_reason": None, "usage": {**full["usage"], "output_tokens": 1}}
    yield send("message_start", message=begun)
    for place, block in enumerate(full["content"]):
        if block["type"] == "text":
            yield send("content_block_start", index=place, content_block={"type": "text", "text": ""})
            for piece in _pieces(block["text"]):
                yield send("content_block_delta", index=place, delta={"type": "text_delta", "text": piece})
        else:
            yield send("content_block_start", index=place, content_block={**block, "input": {}})
            for piece in _pieces(json.dumps(block["input"])):
                yield send(
                    "content_block_delta", index=place, delta={"type": "input_json_delta", "partial_json": piece}
                )
        yield send("content_block_stop", index=place)
    delta = {"stop_reason": full["stop_reason"], "stop_sequence": None}
    yield send("message_delta", delta=delta, usage={"output_tokens": 40})
    yield send("message_stop")
