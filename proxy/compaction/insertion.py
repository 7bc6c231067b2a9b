"""The one object that carries all that is ever inserted into a request, for compaction and restore alike."""

from __future__ import annotations

from typing import Literal

import msgspec

Reason = Literal["compaction", "restore", "pins", "recall"]
Placement = Literal["message", "into_previous", "into_next"]
Reasoning = Literal["", "drop", "strip"]  # signed reasoning that a cut unbinds: the upstream drops it, or it leaves


class Insertion(msgspec.Struct, frozen=True):
    """Frozen text at a fixed place of a branch; stored before it is used, replayed byte for byte.

    Places are positions in the branch's key chain, so they survive clients that prune tool results or move reminders.
    The insertion stands before the message that carries key number `end`; the messages that carry keys `start` up to
    `end` (exclusive) leave. `anchor` is the chain hash (hex) after key `end - 1`: it proves an equal prefix.
    """

    id: str  # 12 hex digits over content and place
    branch: str
    start: int  # first key that leaves (== end: nothing leaves)
    end: int  # first key that stays behind the insertion
    anchor: str  # hex of chain[end - 1], "" when end == 0
    placement: Placement  # an own user message, or a part of the neighbouring user message
    text: str  # the inserted text
    reason: Reason
    pins: tuple[str, ...] = ()  # ids of the pins in part one
    first_turn: int = 0  # turn numbers that the insertion stands for
    last_turn: int = 0
    tokens: int = 0  # estimate of the inserted text
    pin_tokens: int = 0  # of these, the user's words: pins and history
    log_tokens: int = 0  # and the work log without history
    humans: tuple[str, ...] = ()  # keys (hex) of the human turns that it stands for
    withdrawn: tuple[str, ...] = ()  # ids of pins that it names as no longer valid
    covers: tuple[str, ...] = ()  # digests of the messages that left
    replaces: tuple[str, ...] = ()  # ids of older insertions of the branch that this one stands for
    partial: tuple[str, ...] = ()  # ids of pins that are shown as excerpts only, not verbatim
    reasoning: Reasoning = ""
    stripped: tuple[str, ...] = ()  # ids of the signatures whose blocks leave
    raw: str = ""  # the provider's own block as a whole message; it stands in place of `text`
