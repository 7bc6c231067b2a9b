"""Replies of chat completions, read for what they say: whole ones, and streams of thousands of small events."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from itertools import takewhile
from typing import Any

import msgspec

from proxy.dialects import sse
from proxy.dialects.base import Answer, Call


class _Function(msgspec.Struct, gc=False):
    name: str | None = None
    arguments: str | None = None


class _ToolCall(msgspec.Struct, gc=False):
    index: int = 0
    id: str | None = None
    function: _Function | None = None


class _Said(msgspec.Struct, gc=False):
    content: Any = None
    refusal: str | None = None
    tool_calls: list[_ToolCall] | None = None


class _Choice(msgspec.Struct, gc=False):
    index: int = 0
    message: _Said | None = None
    delta: _Said | None = None
    finish_reason: str | None = None


class _Details(msgspec.Struct, gc=False):
    cached_tokens: int | None = None


class _Usage(msgspec.Struct, gc=False):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _Details | None = None


class _Reply(msgspec.Struct, gc=False):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None


_whole = msgspec.json.Decoder(_Reply)
_many = msgspec.json.Decoder(list[_Reply])
_DONE = b"[DONE]"
_string = msgspec.json.Decoder(str)
_OPENING, _BETWEEN, _LAST = b"data: ", b"\n\ndata: ", b"[DONE]\n\n"
_CONTENT = re.compile(rb'"content": ?"((?:[^"\\]|\\.)*)"')
_FIRST = 4  # events among which one has to show what the others look like
_RUN = 16  # events alike from which it pays to read them as one
_COMPARED = 64  # events at once
_NOTHING = _Said()


def _answer(
    text: str, calls: tuple[Call, ...], finish: str, refusal: str, usage: _Usage | None, *, complete: bool
) -> Answer:
    usage = usage or _Usage()
    details = usage.prompt_tokens_details or _Details()
    return Answer(
        text=text,
        calls=calls,
        finish=finish,
        refusal=refusal,
        prompt_tokens=usage.prompt_tokens or 0,
        cached_tokens=details.cached_tokens or 0,
        completion_tokens=usage.completion_tokens or 0,
        complete=complete,
    )


class _Heard:
    """What the deltas of the first choice said so far."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.refusals: list[str] = []
        self.calls: dict[int, list[str]] = {}
        self.finish = ""
        self.usage: _Usage | None = None

    def take(self, chunks: Iterable[_Reply]) -> None:
        """Takes all chunks; one loop without calls for what thousands of them hold, a bit of text."""
        text = self.texts.append
        for chunk in chunks:
            if chunk.usage:
                self.usage = chunk.usage
            for choice in chunk.choices or ():
                if choice.index == 0:
                    if choice.finish_reason:
                        self.finish = choice.finish_reason
                    said = choice.delta or choice.message or _NOTHING
                    if said.content:
                        text(said.content if isinstance(said.content, str) else text_of(said.content))
                    if said.refusal or said.tool_calls:
                        self._more(said)

    def _more(self, said: _Said) -> None:
        if said.refusal:
            self.refusals.append(said.refusal)
        for delta in said.tool_calls or ():
            call = self.calls.setdefault(delta.index, ["", "", ""])
            function = delta.function or _Function()
            call[0] += function.name or ""
            call[1] += function.arguments or ""
            call[2] = delta.id or call[2]


def read_whole(body: bytes) -> Answer:
    """Reads the first choice of a reply that isn't a stream; one that can't be read says nothing."""
    try:
        reply = _whole.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Answer()
    choice = reply.choices[0] if reply.choices else _Choice()
    message = choice.message or _Said()
    calls = tuple(
        Call(call.function.name or "", call.function.arguments or "", call.id or "")
        for call in message.tool_calls or ()
        if call.function
    )
    return _answer(
        text_of(message.content),
        calls,
        choice.finish_reason or "",
        message.refusal or "",
        reply.usage,
        complete=bool(reply.choices),
    )


def read_stream(stream: bytes) -> Answer:
    """Puts the deltas of the first choice together; a stream is complete when a finish reason or [DONE] came."""
    heard, done = _Heard(), True
    # No line break stands inside JSON as it is, so this is found between two events and nowhere else.
    events = stream[len(_OPENING) :].split(_BETWEEN) if stream.startswith(_OPENING) else []
    taken = _runs(events, heard)
    chunks: Iterable[_Reply] | None = _at_once(events[taken:])
    if chunks is None:
        found = sse.events(_OPENING + _BETWEEN.join(events[taken:]) if taken else stream)
        payloads = [data for data in found if data != _DONE]
        done, chunks = len(payloads) < len(found), _chunks(payloads)
    heard.take(chunks)
    calls = tuple(Call(name, arguments, identity) for name, arguments, identity in heard.calls.values())
    text, refusal = "".join(heard.texts), "".join(heard.refusals)
    return _answer(text, calls, heard.finish, refusal, heard.usage, complete=done or bool(heard.finish))


def _runs(events: list[bytes], heard: _Heard) -> int:
    """Takes leading events that are alike but for their bit of text as one; gives how many events were taken."""
    place = looked = 0
    while looked < _FIRST and place < len(events) - 1 and (chunk := _chunk(events[place])) is not None:
        alike = _alike(events, place, chunk)
        text = _unquoted(alike) if len(alike) >= _RUN else None
        if text is not None:
            heard.texts.append(text)
            place, looked = place + len(alike), 0
        else:
            heard.take((chunk,))
            place, looked = place + 1, looked + 1
    return place


def _alike(events: list[bytes], first: int, chunk: _Reply) -> list[bytes]:
    """Gives the raw bits of text of an event, which is `chunk`, and of those that follow it and differ in that alone.

    The last event isn't among them: its end may be missing.
    """
    bit = _only_text(chunk, events[first])
    if bit is None or not events[first + 1].startswith(before := events[first][: bit.start(1)]):
        return []
    behind = events[first][bit.end(1) :]
    found: list[bytes] = []
    start, end, between = len(before), -len(behind), behind + _BETWEEN + before
    for place in range(first, len(events) - 1, _COMPARED):
        some = events[place : min(place + _COMPARED, len(events) - 1)]
        inner = [event[start:end] for event in some]
        if before + between.join(inner) + behind != _BETWEEN.join(some):  # all at once: a loop costs more than reading
            pairs = zip(some, inner, strict=True)
            return found + [text for _, text in takewhile(lambda pair: pair[0] == before + pair[1] + behind, pairs)]
        found += inner
    return found


def _only_text(chunk: _Reply, event: bytes) -> re.Match[bytes] | None:
    """Finds where the text stands in an event that holds a bit of the first choice's text and nothing else."""
    choice = chunk.choices[0] if chunk.choices and len(chunk.choices) == 1 else _Choice(index=-1)
    said = choice.delta or _NOTHING
    if choice.index or choice.finish_reason or chunk.usage or said.refusal or said.tool_calls or not said.content:
        return None
    places = list(_CONTENT.finditer(event))
    return places[0] if len(places) == 1 and _unquoted([places[0].group(1)]) == said.content else None


def _unquoted(strings: list[bytes]) -> str | None:
    """Joins the insides of JSON strings; None when one of them is more than that."""
    with suppress(msgspec.DecodeError, UnicodeDecodeError):
        return _string.decode(b'"' + b"".join(strings) + b'"')
    return None


def _at_once(events: list[bytes]) -> list[_Reply] | None:
    """Reads plain events, to the end of their stream, as one list; None for any other."""
    if not events or events[-1] != _LAST:
        return None
    with suppress(msgspec.DecodeError, UnicodeDecodeError):
        return _many.decode(b"[" + b",".join(events[:-1]) + b"]")
    return None


def _chunks(payloads: list[bytes]) -> Iterable[_Reply]:
    """Reads the chunks of a stream, all at once; one by one when one of them can't be read, which is then left out."""
    with suppress(msgspec.DecodeError, UnicodeDecodeError):
        return _many.decode(b"[" + b",".join(payloads) + b"]")
    return [chunk for data in payloads if (chunk := _chunk(data)) is not None]


def _chunk(data: bytes) -> _Reply | None:
    with suppress(msgspec.DecodeError, UnicodeDecodeError):
        return _whole.decode(data)
    return None


def text_of(content: object) -> str:
    """Gives the text of a content value: a string, or the text parts of a list joined with line feeds."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        texts = (part.get("text") for part in content if isinstance(part, dict))
        return "\n".join(text for text in texts if isinstance(text, str))
    return ""
