"""The transcript of one request, as the core sees it: messages, parts, human turns and their keys.

Everything here is immutable. A `Message` keeps the very bytes that the client sent, so that an untouched message is
re-emitted byte for byte; equal bytes give the same object, so messages are compared by identity.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Literal

import msgspec

PartKind = Literal["text", "call", "result", "image", "thinking", "opaque"]


def digest_of(data: bytes) -> str:
    """Gives the content id of bytes: 32 hex digits (blake2b, 128 bits)."""
    return blake2b(data, digest_size=16).hexdigest()


class Part(msgspec.Struct, frozen=True):
    """One piece of a message: a text, a tool call, a tool result, an image, reasoning, or something unknown."""

    kind: PartKind
    text: str = ""  # the text · a call's arguments as sent · a result's text
    name: str = ""  # a call's tool name
    call_id: str = ""  # of a call or a result · of what a reference names
    size: int = 0  # bytes of an image's data, of encrypted reasoning
    signed: str = ""  # content id of the provider's signature that binds this to what stands before it, "" without one


class Message(msgspec.Struct, frozen=True, eq=False):
    """One item of the wire's message list, with the client's own bytes."""

    raw: bytes
    digest: str
    role: str  # system, developer, user, assistant, tool, function, or what the client wrote
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        """All text parts and result texts, joined with line feeds."""
        return "\n".join(part.text for part in self.parts if part.kind in ("text", "result"))


class Transcript(msgspec.Struct, frozen=True):
    """One parsed request. `head + b",".join(raw of messages) + tail` is a body of the same meaning."""

    dialect: str  # chat, responses, messages
    model: str
    messages: tuple[Message, ...]  # system messages included, in wire order
    tools: tuple[str, ...]  # tool names in wire order
    tools_raw: bytes  # the tools value as sent, b"" without tools
    stream: bool
    max_output: int  # requested output cap in tokens, 0 when none was asked for
    response_format: str  # the JSON of a requested output schema, "" without one
    head: bytes
    tail: bytes
    options: Mapping[str, bytes] = {}  # raw values of the body's other keys
    system: str = ""  # system text that stands outside the list of messages
    continues: str = ""  # id of what the server holds, and this body goes on from
    compacts: bool = False  # the server is asked to compact: the answer is what the client goes on with

    @property
    def system_text(self) -> str:
        """The system text outside the list, then the leading system and developer texts, joined with line feeds."""
        texts: list[str] = [self.system] if self.system else []
        for message in self.messages:
            if message.role not in ("system", "developer"):
                break
            texts.append(message.text)
        return "\n".join(texts)

    def strings(self, names: Sequence[str]) -> dict[str, str]:
        """Gives the body's own fields of these names that hold a string."""
        found = {}
        for name in names:
            value = msgspec.json.decode(self.options[name]) if name in self.options else None
            if isinstance(value, str):
                found[name] = value
        return found


class Human(msgspec.Struct, frozen=True):
    """A verbatim span of a person's words inside a message."""

    text: str
    part: int  # index into Message.parts
    start: int  # offset in characters in that part's text
    via: str = ""  # the tool's name when the words stand in a tool result


class HumanTurn(msgspec.Struct, frozen=True):
    """What a person said at one point of a session; the unit of pins and history."""

    key: bytes  # turn key (16 bytes): hash over kind and normalised text
    text: str  # verbatim
    number: int  # turn number in the session, counted over human and assistant turns
    message: str  # digest of the message that carried it
    via: str = ""  # the tool's name when the words stood in a tool result
    asked: str = ""  # closing words of the assistant turn before it, at most 400 characters
    images: tuple[str, ...] = ()  # digests of messages' image parts said in the same message


KeyKind = Literal["u", "a", "c", "o", "s"]  # human, assistant text, call, opaque item, summary


class Key(msgspec.Struct, frozen=True):
    """A turn key: what one text block or call contributes to the chain (wire rules: lineage, section 2)."""

    kind: KeyKind
    hash: bytes  # 16 bytes over kind and normalised text
    message: int  # index of the carrying message in the transcript
    strong: str = ""  # normalised call id when it can be globally unique, else ""
    length: int = 0  # characters of the normalised text
    human: Human | None = None
    closing: str = ""  # last 400 characters of an assistant text


class ClientId(msgspec.Struct, frozen=True):
    """What the agent itself calls its conversation."""

    id: str
    agent: str = ""  # its id of a sub-agent
    parent: str = ""  # id of the conversation that started this one
    source: str = "header"  # header, or body


class Call(msgspec.Struct, frozen=True):
    """A tool call in an answer: name, arguments as sent, id."""

    name: str
    arguments: str
    id: str


class Answer(msgspec.Struct, frozen=True):
    """A model's reply, parsed beside the stream; token counts are the upstream's, 0 when it gave none."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    finish: str = ""  # the dialect's own word: stop, length, tool_calls, …
    refusal: str = ""
    prompt_tokens: int = 0  # input + cache read + cache write
    cached_tokens: int = 0
    completion_tokens: int = 0
    complete: bool = False  # the reply came to its proper end
    id: str = ""  # under which the upstream may keep it
    items: tuple[Message, ...] = ()  # the reply as the client sends it back, where a dialect knows that
