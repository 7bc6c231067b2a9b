"""Reads the model's replies in the Messages dialect, whole or as events."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from proxy.dialects import sse
from proxy.dialects.base import Answer, Call
from proxy.dialects.messages_blocks import text_of


class _Usage(msgspec.Struct):
    input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    output_tokens: int | None = None


class _Reply(msgspec.Struct):
    content: list[Any] | None = None
    stop_reason: str | None = None
    usage: _Usage | None = None


class _Delta(msgspec.Struct):
    type: str = ""
    text: str | None = None
    partial_json: str | None = None
    content: Any = None
    stop_reason: str | None = None


class _Event(msgspec.Struct):
    type: str = ""
    index: int = 0
    message: _Reply | None = None
    content_block: dict[str, Any] | None = None
    delta: _Delta | None = None
    usage: _Usage | None = None


_whole = msgspec.json.Decoder(_Reply)
_event = msgspec.json.Decoder(_Event)


@dataclass(slots=True)
class _Block:
    """One block as it grows: what it began with, and the pieces that came."""

    start: dict[str, Any]
    texts: list[str] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)  # of a call's input

    @property
    def kind(self) -> str:
        return str(self.start.get("type", ""))

    def add(self, delta: _Delta) -> None:
        self.texts.append(delta.text or "")
        self.pieces.append(delta.partial_json or "")
        if delta.type == "compaction_delta":
            self.texts.append(text_of(delta.content))

    def text(self) -> str:
        own = text_of(self.start.get("content")) if self.kind == "compaction" else self.start.get("text")
        return (own if isinstance(own, str) else "") + "".join(self.texts)

    def call(self) -> Call:
        streamed = "".join(self.pieces)
        arguments = streamed or msgspec.json.encode(self.start.get("input", {})).decode()
        return Call(str(self.start.get("name", "")), arguments, str(self.start.get("id", "")))


def read_whole(body: bytes) -> Answer:
    """Reads a reply that came in one piece; what can't be read counts as nothing said."""
    try:
        reply = _whole.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Answer()
    blocks = [_Block(block) for block in reply.content or () if isinstance(block, dict)]
    return _answer(blocks, reply.stop_reason or "", _Tally().plus(reply.usage), complete=bool(reply.stop_reason))


def read_stream(stream: bytes) -> Answer:
    """Puts the blocks of a stream together; it is complete when the message stopped, or told why it will."""
    blocks: dict[int, _Block] = {}
    finish, tally, done = "", _Tally(), False
    for data in sse.events(stream):
        try:
            event = _event.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
        tally = tally.plus(event.message.usage if event.message else None).plus(event.usage)
        done = done or event.type == "message_stop"
        if event.content_block is not None:
            blocks[event.index] = _Block(event.content_block)
        elif event.delta is not None:
            finish = event.delta.stop_reason or finish
            if event.index in blocks and event.type == "content_block_delta":
                blocks[event.index].add(event.delta)
    return _answer([blocks[index] for index in sorted(blocks)], finish, tally, complete=done or bool(finish))


class _Tally(msgspec.Struct, frozen=True):
    """Token counts so far; later events give running totals, and may leave out what they gave before."""

    input: int = 0
    written: int = 0
    read: int = 0
    output: int = 0

    def plus(self, usage: _Usage | None) -> _Tally:
        if usage is None:
            return self
        return _Tally(
            usage.input_tokens or self.input,
            usage.cache_creation_input_tokens or self.written,
            usage.cache_read_input_tokens or self.read,
            usage.output_tokens or self.output,
        )


def _answer(blocks: list[_Block], finish: str, tally: _Tally, *, complete: bool) -> Answer:
    alone = len(blocks) == 1 and blocks[0].kind == "compaction"
    return Answer(
        text="".join(block.text() for block in blocks if block.kind == "text" or alone),
        calls=tuple(block.call() for block in blocks if block.kind.endswith("tool_use")),
        finish=finish,
        refusal="refused" if finish == "refusal" else "",
        prompt_tokens=tally.input + tally.written + tally.read,
        cached_tokens=tally.read,
        completion_tokens=tally.output,
        complete=complete,
    )
