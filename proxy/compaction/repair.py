"""The only mending of what the client itself sent wrong: a tool result whose call is gone becomes plain text."""

from __future__ import annotations

from collections.abc import Sequence

from proxy.compaction.blocks import fenced
from proxy.compaction.rewrite import Writer
from proxy.transcript import Message


def repaired(messages: Sequence[Message], writer: Writer, *, near: bool = True) -> list[bytes] | None:
    """Gives the messages with each orphan result as a text of the role user, or None when there is no orphan.

    `near`: results stand directly behind their calls; otherwise anywhere behind them.
    """
    found = False
    out: list[bytes] = []
    open_calls: set[str] = set()
    for message in messages:
        results = [part for part in message.parts if part.kind == "result" and part.call_id]
        if not results:
            calls = {part.call_id for part in message.parts if part.kind == "call"}
            open_calls = calls if near else open_calls | calls
        if any(part.call_id not in open_calls for part in results):
            found = True
            text = "\n".join(part.text for part in results)
            out.append(
                writer.user_message(f"[goalkeeper: a tool result whose call is gone, kept as data]\n{fenced(text)}")
            )
            continue
        open_calls -= {part.call_id for part in results}
        out.append(message.raw)
    return out if found else None
