"""The chat-completions dialect: `POST /v1/chat/completions`, whole and streamed.

Facts about the wire: OpenAI's API reference and the invariants that SDKs check (calls and results pair directly; a
usage chunk has no choices; unknown fields of messages and bodies pass through).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import msgspec

from proxy.dialects.base import Answer
from proxy.dialects.body import BodyReader
from proxy.dialects.chat_answer import read_stream, read_whole, text_of
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
        return read_stream(body) if sse else read_whole(body)

    def error(self, error: GoalkeeperError) -> bytes:
        """Gives our own error in the form of OpenAI's API."""
        return error_body(error)

    def stream_error(self, error: GoalkeeperError) -> bytes:
        """Gives our own error as one event; SDKs raise on `data: {"error": …}` only, not on named events."""
        return b"data: " + self.error(error) + b"\n\n"


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
                text_of(content),
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


@lru_cache(maxsize=64)
def _tool_names(raw: bytes) -> tuple[str, ...]:
    tools = msgspec.json.decode(raw) if raw else None
    names = []
    for tool in tools if isinstance(tools, list) else ():
        function = tool.get("function") if isinstance(tool, dict) else None
        name = function.get("name") if isinstance(function, dict) else None
        names.append(name if isinstance(name, str) else "?")
    return tuple(names)
