"""The Messages dialect: `POST /v1/messages`, whole and streamed.

Facts about the wire: Anthropic's API reference and its public SDK. Results stand at the start of the user message
behind their calls, signed reasoning goes back as it came, and unknown kinds of blocks keep their place.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from proxy.dialects.base import Answer
from proxy.dialects.jsonbytes import array_items, object_fields, value_span
from proxy.dialects.memory import Memory, message_object, number, string
from proxy.dialects.messages_answer import read_stream, read_whole
from proxy.dialects.messages_blocks import is_result, parts_of, text_of
from proxy.errors import GoalkeeperError, NothingFits, UnreadableBody
from proxy.transcript import Message, Transcript, digest_of

_ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    504: "timeout_error",
}


class Messages:
    """Reads and writes Anthropic's Messages; equal bytes give the same message object."""

    name = "messages"
    path = "/v1/messages"

    def __init__(self) -> None:
        self._memory = Memory()

    def parse(self, body: bytes) -> Transcript:
        """Reads a request. Raises UnreadableBody."""
        fields = object_fields(body)
        array = fields.get("messages")
        if array is None or not array.startswith(b"["):
            raise UnreadableBody("the body has no list of messages")
        start, end = value_span(body, fields, "messages")
        tools = fields.get("tools", b"")
        return Transcript(
            dialect=self.name,
            model=string(fields.get("model")),
            messages=tuple(map(self.message, array_items(array))),
            tools=_tool_names(tools),
            tools_raw=tools if tools != b"null" else b"",
            stream=fields.get("stream") == b"true",
            max_output=number(fields.get("max_tokens")),
            response_format=_output_schema(fields),
            head=body[: start + 1],
            tail=body[end - 1 :],
            options={name: value for name, value in fields.items() if name not in ("messages", "tools")},
            system=text_of(msgspec.json.decode(fields.get("system") or b"null")),
            compacts=fields.get("compaction", b"null") != b"null",
        )

    def message(self, raw: bytes) -> Message:
        """Gives the message of these bytes. Raises UnreadableBody."""
        return self._memory.message(raw, _message)

    def render(self, transcript: Transcript, messages: Sequence[bytes]) -> bytes:
        """Gives a body with these messages in place of the transcript's own; all else byte for byte as it came."""
        return transcript.head + b",".join(messages) + transcript.tail

    def user_message(self, text: str) -> bytes:
        """Gives a message of the role user with this text as a block of its own."""
        return msgspec.json.encode({"role": "user", "content": [_text_block(text)]})

    def question(self, model: str, order: str, text: str, max_tokens: int) -> bytes:
        """Gives a request of our own: an order as system text, and the text that it is about."""
        asked = {"model": model, "max_tokens": max_tokens, "system": order}
        return msgspec.json.encode({**asked, "messages": [{"role": "user", "content": text}]})

    def extend_message(self, raw: bytes, text: str, *, before: bool = False) -> bytes:
        """Gives the message with `text` as a block of its own; results stay in front of it in any case."""
        fields = object_fields(raw)
        content = fields.get("content") or b"null"
        if content.startswith(b"["):
            blocks = [msgspec.Raw(block) for block in array_items(content)]
        else:
            own = string(content)
            blocks = [msgspec.Raw(msgspec.json.encode(_text_block(own)))] if own else []
        ours = msgspec.Raw(msgspec.json.encode(_text_block(text)))
        blocks.insert(_behind_results(blocks) if before else len(blocks), ours)
        encoded = {key: msgspec.Raw(value) for key, value in fields.items()}
        encoded["content"] = msgspec.Raw(msgspec.json.encode(blocks))
        return msgspec.json.encode(encoded)

    def answer(self, body: bytes, *, sse: bool) -> Answer:
        """Reads a reply, whole or cut off; what can't be read counts as nothing said."""
        return read_stream(body) if sse else read_whole(body)

    def error(self, error: GoalkeeperError) -> bytes:
        """Gives our own error in the form of Anthropic's API; clients know an overflow by its opening words."""
        words = f"prompt is too long: {error}" if isinstance(error, NothingFits) else str(error)
        kind = _ERROR_TYPES.get(error.status, "api_error")
        return msgspec.json.encode({"type": "error", "error": {"type": kind, "message": words}})

    def stream_error(self, error: GoalkeeperError) -> bytes:
        """Gives our own error as an event; SDKs raise on the event name `error`."""
        return b"event: error\ndata: " + self.error(error) + b"\n\n"


def _message(raw: bytes) -> Message:
    item, role = message_object(raw)
    return Message(raw=raw, digest=digest_of(raw), role=role, parts=parts_of(item.get("content"), role))


def _text_block(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def _behind_results(blocks: Sequence[msgspec.Raw]) -> int:
    places = [place for place, block in enumerate(blocks, 1) if is_result(msgspec.json.decode(block))]
    return places[-1] if places else 0


def _output_schema(fields: dict[str, bytes]) -> str:
    """The JSON of a requested output format: `output_config.format`, or `output_format` in its first beta."""
    config: object = msgspec.json.decode(fields.get("output_config") or b"null")
    if isinstance(config, dict) and config.get("format"):
        return msgspec.json.encode(config["format"]).decode()
    return fields.get("output_format", b"").decode()


def _tool_names(raw: bytes) -> tuple[str, ...]:
    tools = msgspec.json.decode(raw) if raw else None
    names = []
    for tool in tools if isinstance(tools, list) else ():
        found = (tool.get("name") or tool.get("type")) if isinstance(tool, dict) else None
        names.append(found if isinstance(found, str) else "?")
    return tuple(names)
