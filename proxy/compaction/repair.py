"""The only mending of what the client itself sent wrong: a tool result whose call is gone becomes plain text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from proxy.compaction.blocks import fenced
from proxy.compaction.rewrite import Writer
from proxy.transcript import Message

MENDED = "orphan_repaired"  # the flag of a request whose body was mended
_ALONE = ("tool", "function")  # roles of messages that are one result
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_blocks = msgspec.json.Decoder(list[msgspec.Raw])


class _Block(msgspec.Struct):
    tool_use_id: str = ""


def repaired(messages: Sequence[Message], writer: Writer, *, near: bool = True) -> list[bytes] | None:
    """Gives the messages with each orphan result as a text of the role user, or None when there is no orphan.

    `near`: results stand directly behind their calls; otherwise anywhere behind them.
    """
    found = False
    out: list[bytes] = []
    held: list[bytes] = []  # own messages of ours that must not stand between calls and their other results
    open_calls: set[str] = set()
    for message in messages:
        results = {part.call_id: part.text for part in message.parts if part.kind == "result" and part.call_id}
        calls = {part.call_id for part in message.parts if part.kind == "call"}
        if calls or not results:
            open_calls = calls if near else open_calls | calls
        orphans = {name: _told(text) for name, text in results.items() if name not in open_calls}
        open_calls -= results.keys()
        if message.role == "assistant":  # results of the provider's own tools are its matter
            orphans = {}
        found = found or bool(orphans)
        if not results:
            out += held
            held.clear()
        alone = near and message.role in _ALONE
        (held if orphans and alone else out).append(_mended(message, orphans, writer) if orphans else message.raw)
    return [*out, *held] if found else None


def _told(text: str) -> str:
    return f"[goalkeeper: a tool result whose call is gone, kept as data]\n{fenced(text)}"


def _mended(message: Message, orphans: Mapping[str, str], writer: Writer) -> bytes:
    """Gives the message with its orphans as texts; other blocks of it stay, results first."""
    if message.role in _ALONE:
        return writer.user_message("\n".join(orphans.values()))
    fields = _fields.decode(message.raw)
    answers: list[msgspec.Raw] = []
    others: list[msgspec.Raw] = []
    for block in _blocks.decode(fields["content"]):
        name = msgspec.json.decode(block, type=_Block).tool_use_id
        if name in orphans:
            others.append(msgspec.Raw(msgspec.json.encode({"type": "text", "text": orphans[name]})))
        else:
            (answers if name else others).append(block)
    fields["content"] = msgspec.Raw(msgspec.json.encode(answers + others))
    return msgspec.json.encode(fields)
