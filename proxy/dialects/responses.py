"""The Responses dialect: `POST /v1/responses`, whole and streamed.

Facts about the wire: OpenAI's API reference and SDK. `input` is a text or a list of items; `instructions` stand outside
of it; `previous_response_id` and `conversation` name history that the server holds, and exclude each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import msgspec
from msgspec.structs import replace

from proxy.dialects import sse
from proxy.dialects.base import Answer, Call
from proxy.dialects.body import Body, BodyReader
from proxy.dialects.items import TRIGGER, read_item, refusals
from proxy.dialects.jsonbytes import object_fields, value_span
from proxy.dialects.memory import number, string
from proxy.dialects.openai import error_body, error_fields
from proxy.errors import GoalkeeperError, UnreadableBody
from proxy.transcript import Message, Transcript

_PREVIOUS = "previous_response_id"
_ENDED = ("completed", "incomplete")  # the reply came to its proper end, if need be at its output limit


class Responses:
    """Reads and writes the Responses API; remembers items that it has parsed, so equal bytes give the same object."""

    name = "responses"
    path = "/v1/responses"

    def __init__(self) -> None:
        self._bodies = BodyReader("input", read_item)

    def parse(self, body: bytes) -> Transcript:
        """Reads a request. Raises UnreadableBody."""
        read = self._read(body)
        fields, items = read.fields, read.messages
        tools = fields.get("tools", b"")
        return Transcript(
            dialect=self.name,
            model=string(fields.get("model")),
            messages=items,
            tools=_tool_names(tools),
            tools_raw=tools if tools != b"null" else b"",
            stream=fields.get("stream") == b"true",
            max_output=number(fields.get("max_output_tokens")),
            response_format=fields.get("text", b"").decode(),
            head=read.head,
            tail=read.tail,
            options=fields,
            system=string(fields.get("instructions")),
            continues=_continues(fields),
            compacts=bool(items) and any(part.name == TRIGGER for part in items[-1].parts if part.kind == "opaque"),
        )

    def _read(self, body: bytes) -> Body:
        """Takes a body apart; what goes on from a history of the server is framed without naming that."""
        try:
            read = self._bodies.body(body)
        except UnreadableBody:
            read = self._without_list(body)
        return replace(read, head=_head(read.fields), tail=b"]}") if _continues(read.fields) else read

    def _without_list(self, body: bytes) -> Body:
        """Takes a body apart whose input is a text, or none where the server holds the history."""
        fields = object_fields(body)
        given = fields.get("input", b"null")
        if given.startswith(b'"'):
            start, end = value_span(body, fields, "input")
            item = self.message(_user_item(string(given)))
            return Body(_others(fields), (item,), body[:start] + b"[", b"]" + body[end:])
        if given == b"null" and _continues(fields):
            return Body(_others(fields), (), b"", b"")
        raise UnreadableBody("the body has no input")

    def message(self, raw: bytes) -> Message:
        """Gives the item of these bytes. Raises UnreadableBody."""
        return self._bodies.message(raw)

    def render(self, transcript: Transcript, messages: Sequence[bytes]) -> bytes:
        """Gives a body with these items as its input, which goes on from nothing that the server holds."""
        return transcript.head + b",".join(messages) + transcript.tail

    def user_message(self, text: str) -> bytes:
        """Gives an item of the role user with this text."""
        return _user_item(text)

    def extend_message(self, raw: bytes, text: str, *, before: bool = False) -> bytes:
        """Gives the item with `text` added at its end (or before its own content), all other keys as they were."""
        fields: dict[str, Any] = dict(object_fields(raw))
        content = msgspec.json.decode(fields.get("content") or b"null")
        if isinstance(content, list):
            part = {"type": "input_text", "text": text}
            content = [part, *content] if before else [*content, part]
        else:
            own = content if isinstance(content, str) else ""
            content = "\n\n".join(piece for piece in ((text, own) if before else (own, text)) if piece)
        encoded = {key: msgspec.Raw(value) for key, value in fields.items()}
        encoded["content"] = msgspec.Raw(msgspec.json.encode(content))
        return msgspec.json.encode(encoded)

    def question(self, model: str, order: str, text: str, max_tokens: int) -> bytes:
        """Gives the body of a request of our own: one question, without tools, that the server doesn't keep."""
        body = {"model": model, "instructions": order, "input": text, "max_output_tokens": max_tokens}
        return msgspec.json.encode({**body, "store": False, "stream": False})

    def answer(self, body: bytes, *, sse: bool) -> Answer:
        """Reads a reply, whole or cut off; what can't be read counts as nothing said."""
        if sse:
            return self._read_stream(body)
        try:
            reply = _whole.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return Answer()
        return self._answer(reply, reply.output or ())

    def _read_stream(self, stream: bytes) -> Answer:
        """Takes the reply from its last event; of a stream that was cut off, finished items and deltas."""
        items: list[msgspec.Raw] = []
        deltas: list[str] = []
        reply = _Reply(status="in_progress")
        for data in sse.events(stream):
            try:
                event = _event.decode(data)
                if event.type == "response.output_text.delta":
                    deltas.append(string(bytes(event.delta)))
                elif event.type == "response.output_item.done":
                    items.append(event.item)
                elif event.type in _LAST:
                    reply = _whole.decode(event.response)
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue
        return self._answer(reply, reply.output or items, "".join(deltas))

    def _answer(self, reply: _Reply, output: Iterable[msgspec.Raw], heard: str = "") -> Answer:
        items = tuple(self._items(output))
        parts = [part for item in items for part in item.parts]
        calls = tuple(Call(part.name, part.text, part.call_id) for part in parts if part.kind == "call")
        usage = reply.usage or _Usage()
        status = reply.status or ("completed" if reply.output is not None else "")
        return Answer(
            text="\n".join(part.text for part in parts if part.kind == "text") or heard,
            calls=calls,
            finish=_finish(status, reply, calls),
            refusal="\n".join(filter(None, (refusals(item.raw) for item in items))),
            prompt_tokens=usage.input_tokens or 0,
            cached_tokens=(usage.input_tokens_details or _Details()).cached_tokens or 0,
            completion_tokens=usage.output_tokens or 0,
            complete=status in _ENDED,
            id=reply.id or "",
            items=items,
        )

    def _items(self, output: Iterable[msgspec.Raw]) -> Iterable[Message]:
        for raw in output:
            try:
                yield self.message(bytes(raw))
            except UnreadableBody:
                continue

    def error(self, error: GoalkeeperError) -> bytes:
        """Gives our own error in the form of OpenAI's API."""
        return error_body(error)

    def stream_error(self, error: GoalkeeperError) -> bytes:
        """Gives our own error as one event of the kind `error`, with an error object for SDKs that look for one."""
        fields = error_fields(error)
        event = {"type": "error", **{name: fields[name] for name in ("code", "message", "param")}, "sequence_number": 0}
        return b"event: error\ndata: " + msgspec.json.encode({**event, "error": fields}) + b"\n\n"


class _Details(msgspec.Struct):
    cached_tokens: int | None = None


class _Usage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: _Details | None = None


class _Why(msgspec.Struct):
    reason: str | None = None


class _Reply(msgspec.Struct):
    id: str | None = None
    status: str | None = None
    output: list[msgspec.Raw] | None = None
    usage: _Usage | None = None
    incomplete_details: _Why | None = None


class _Event(msgspec.Struct):
    type: str = ""
    delta: msgspec.Raw = msgspec.Raw(b'""')
    item: msgspec.Raw = msgspec.Raw(b"{}")
    response: msgspec.Raw = msgspec.Raw(b"{}")


_LAST = ("response.completed", "response.incomplete", "response.failed")
_whole = msgspec.json.Decoder(_Reply)
_event = msgspec.json.Decoder(_Event)


def _finish(status: str, reply: _Reply, calls: tuple[Call, ...]) -> str:
    if status == "completed":
        return "tool_calls" if calls else "stop"
    why = reply.incomplete_details
    return (why.reason if why is not None else None) or status


def _user_item(text: str) -> bytes:
    content = [{"type": "input_text", "text": text}]
    return msgspec.json.encode({"type": "message", "role": "user", "content": content})


def _others(fields: dict[str, bytes]) -> dict[str, bytes]:
    return {name: value for name, value in fields.items() if name != "input"}


def _head(fields: dict[str, bytes]) -> bytes:
    """Gives what stands before the items of a body that carries its whole history."""
    own = [msgspec.json.encode(name) + b":" + value + b"," for name, value in fields.items() if name != _PREVIOUS]
    return b"{" + b"".join(own) + b'"input":['


def _continues(fields: dict[str, bytes]) -> str:
    """Gives the id of what the server holds and the body goes on from, "" when it carries all itself."""
    return string(fields.get(_PREVIOUS)) or _conversation(fields.get("conversation"))


def _conversation(raw: bytes | None) -> str:
    value = msgspec.json.decode(raw) if raw else None
    if isinstance(value, dict):
        value = value.get("id")
    return value if isinstance(value, str) else ""


@lru_cache(maxsize=64)
def _tool_names(raw: bytes) -> tuple[str, ...]:
    tools = msgspec.json.decode(raw) if raw else None
    names = []
    for tool in tools if isinstance(tools, list) else ():
        name = (tool.get("name") or tool.get("type")) if isinstance(tool, dict) else None
        names.append(name if isinstance(name, str) else "?")
    return tuple(names)
