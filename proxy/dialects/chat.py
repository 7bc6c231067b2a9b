"""The chat-completions dialect: `POST /v1/chat/completions`, whole and streamed.

Facts about the wire: OpenAI's API reference and the invariants that SDKs check (calls and results pair directly; a
usage chunk has no choices; unknown fields of messages and bodies pass through).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

import msgspec

from proxy.dialects import sse
from proxy.dialects.base import Answer, Call
from proxy.dialects.body import BodyReader
from proxy.dialects.jsonbytes import object_fields
from proxy.dialects.memory import message_object, number, string
from proxy.dialects.openai import error_body
from proxy.errors import GoalkeeperError
from proxy.transcript import Message, Part, Transcript, digest_of


class Chat:
    """Reads and writes chat completions; remembers messages that it has parsed, so equal bytes give the same object."""

    name = "chat"
    path = "/v1/chat/completions"

    def __init__(self) -> None:
        self._bodies = BodyReader("messages", _message)

    def parse(self, body: bytes) -> Transcript:
        """Reads a request. Raises UnreadableBody."""
        read = self._bodies.body(body)
        fields = read.fields
        tools = fields.get("tools", b"")
        return Transcript(
            dialect=self.name,
            model=string(fields.get("model")),
            messages=read.messages,
            tools=_tool_names(tools),
            tools_raw=tools if tools != b"null" else b"",
            stream=fields.get("stream") == b"true",
            max_output=number(fields.get("max_completion_tokens")) or number(fields.get("max_tokens")),
            response_format=fields.get("response_format", b"").decode(),
            head=read.head,
            tail=read.tail,
            options=fields,
        )

    def message(self, raw: bytes) -> Message:
        """Gives the message of these bytes. Raises UnreadableBody."""
        return self._bodies.message(raw)

    def render(self, transcript: Transcript, messages: Sequence[bytes]) -> bytes:
        """Gives a body with these messages in place of the transcript's own; all else byte for byte as it came."""
        return transcript.head + b",".join(messages) + transcript.tail

    def user_message(self, text: str) -> bytes:
        """Gives a message of the role user with this text."""
        return msgspec.json.encode({"role": "user", "content": text})

    def question(self, model: str, order: str, text: str, max_tokens: int) -> bytes:
        """Gives a request of our own: an order as system text, and the text that it is about."""
        messages = [{"role": "system", "content": order}, {"role": "user", "content": text}]
        return msgspec.json.encode({"model": model, "messages": messages, "max_tokens": max_tokens, "stream": False})

    def extend_message(self, raw: bytes, text: str, *, before: bool = False) -> bytes:
        """Gives the message with `text` added at its end (or before its own text), all other keys as they were."""
        fields: dict[str, Any] = dict(object_fields(raw))
        content = msgspec.json.decode(fields.get("content") or b"null")
        if isinstance(content, list):
            part = {"type": "text", "text": text}
            content = [part, *content] if before else [*content, part]
        else:
            own = content or ""
            pieces = (text, own) if before else (own, text)
            content = "\n\n".join(piece for piece in pieces if piece)
        encoded = {key: msgspec.Raw(value) for key, value in fields.items()}
        encoded["content"] = msgspec.Raw(msgspec.json.encode(content))
        return msgspec.json.encode(encoded)

    def answer(self, body: bytes, *, sse: bool) -> Answer:
        """Reads a reply, whole or cut off; what can't be read counts as nothing said."""
        if sse:
            return _read_stream(body)
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
            _text(message.content),
            calls,
            choice.finish_reason or "",
            message.refusal or "",
            reply.usage,
            complete=bool(reply.choices),
        )

    def error(self, error: GoalkeeperError) -> bytes:
        """Gives our own error in the form of OpenAI's API."""
        return error_body(error)

    def stream_error(self, error: GoalkeeperError) -> bytes:
        """Gives our own error as one event; SDKs raise on `data: {"error": …}` only, not on named events."""
        return b"data: " + self.error(error) + b"\n\n"


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
_OPENING, _BETWEEN, _CLOSING = b"data: ", b"\n\ndata: ", b"\n\ndata: [DONE]\n\n"
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
                        text(said.content if isinstance(said.content, str) else _text(said.content))
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


def _read_stream(stream: bytes) -> Answer:
    """Puts the deltas of the first choice together; a stream is complete when a finish reason or [DONE] came."""
    heard, done = _Heard(), True
    chunks: Iterable[_Reply] | None = _at_once(stream)
    if chunks is None:
        found = sse.events(stream)
        payloads = [data for data in found if data != _DONE]
        done, chunks = len(payloads) < len(found), _chunks(payloads)
    heard.take(chunks)
    calls = tuple(Call(name, arguments, identity) for name, arguments, identity in heard.calls.values())
    text, refusal = "".join(heard.texts), "".join(heard.refusals)
    return _answer(text, calls, heard.finish, refusal, heard.usage, complete=done or bool(heard.finish))


def _at_once(stream: bytes) -> list[_Reply] | None:
    """Reads a whole stream of plain events as one list; None for any other."""
    if not (stream.startswith(_OPENING) and stream.endswith(_CLOSING)):
        return None
    # Inside JSON no line break stands as it is: what lies between two events is what lies between two items.
    items = stream[len(_OPENING) : -len(_CLOSING)].replace(_BETWEEN, b",")
    with suppress(msgspec.DecodeError, UnicodeDecodeError):
        return _many.decode(b"[" + items + b"]")
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


def _message(raw: bytes) -> Message:
    item, role = message_object(raw)
    parts = list(_content_parts(item, role))
    if isinstance(reasoning := item.get("reasoning_content"), str) and reasoning:
        parts.append(Part("thinking", reasoning))
    parts.extend(_call_parts(item))
    return Message(raw=raw, digest=digest_of(raw), role=role, parts=tuple(parts))


def _content_parts(item: dict[str, Any], role: str) -> Sequence[Part]:
    content = item.get("content")
    if role in ("tool", "function"):
        identity = item.get("tool_call_id")
        name = item.get("name")
        return [
            Part(
                "result",
                _text(content),
                name=name if isinstance(name, str) else "",
                call_id=identity if isinstance(identity, str) else "",
            )
        ]
    if isinstance(content, str):
        return [Part("text", content)] if content else []
    if isinstance(content, list):
        return [_part(part) for part in content]
    return []


def _part(part: object) -> Part:
    if not isinstance(part, dict):
        return Part("opaque", size=len(str(part)))
    kind = part.get("type")
    for name in ("text", "refusal"):
        if kind in (name, None) and isinstance(part.get(name), str):
            return Part("text", part[name])
    if kind in ("image_url", "image", "input_image"):
        image = part.get("image_url")
        url = image.get("url") if isinstance(image, dict) else image
        return Part("image", size=len(url) if isinstance(url, str) else 0)
    return Part("opaque", size=len(str(part)))


def _call_parts(item: dict[str, Any]) -> Sequence[Part]:
    parts = []
    calls = item.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") or call.get("custom") if isinstance(call, dict) else None
        if isinstance(function, dict):
            parts.append(_call(function, call.get("id")))
    if isinstance(function := item.get("function_call"), dict):
        parts.append(_call(function, ""))
    return parts


def _call(function: dict[str, Any], identity: object) -> Part:
    arguments = function.get("arguments", function.get("input", ""))
    if not isinstance(arguments, str):
        arguments = msgspec.json.encode(arguments).decode()
    name = function.get("name")
    return Part(
        "call",
        arguments,
        name=name if isinstance(name, str) else "",
        call_id=identity if isinstance(identity, str) else "",
    )


def _text(content: object) -> str:
    """The text of a content value: a string, or the text parts of a list joined with line feeds."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        texts = (part.get("text") for part in content if isinstance(part, dict))
        return "\n".join(text for text in texts if isinstance(text, str))
    return ""


@lru_cache(maxsize=64)
def _tool_names(raw: bytes) -> tuple[str, ...]:
    tools = msgspec.json.decode(raw) if raw else None
    names = []
    for tool in tools if isinstance(tools, list) else ():
        function = tool.get("function") if isinstance(tool, dict) else None
        name = function.get("name") if isinstance(function, dict) else None
        names.append(name if isinstance(name, str) else "?")
    return tuple(names)
