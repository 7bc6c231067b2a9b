"""The one path on which a body is rewritten: insertions are applied to the client's messages, nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import msgspec

from proxy.compaction.insertion import Insertion
from proxy.compaction.invariants import SYSTEM_ROLES
from proxy.compaction.thinking import seals, stripped
from proxy.compaction.view import View
from proxy.transcript import Message, digest_of


class Writer(Protocol):
    """What rewriting needs of a dialect."""

    def user_message(self, text: str) -> bytes:
        """Gives a message of the role user with this text."""

    def extend_message(self, raw: bytes, text: str, *, before: bool = False) -> bytes:
        """Gives the message with `text` added."""


class Piece(msgspec.Struct, frozen=True):
    """One message of a forwarded body: the client's own, ours, or the client's with our text added."""

    raw: bytes
    role: str
    source: Message | None = None  # the client's message, None for an own message of ours
    insertions: tuple[str, ...] = ()  # ids of the insertions in it

    @property
    def untouched(self) -> bool:
        """Whether it is the client's own message, byte for byte."""
        return self.source is not None and self.raw is self.source.raw

    @property
    def digest(self) -> str:
        """The content id of the message."""
        return self.source.digest if self.source is not None and self.untouched else digest_of(self.raw)


def applicable(insertions: Iterable[Insertion], view: View) -> tuple[Insertion, ...]:
    """Gives the insertions that stand in this body, in wire order.

    One stands when the keys before its place are the same as when it was made, and no newer one that stands took over.
    """
    standing = [one for one in insertions if _anchored(one, view)]
    replaced = {old for one in standing for old in one.replaces}
    ordered = sorted(enumerate(standing), key=lambda item: (item[1].end, item[0]))
    return tuple(one for _, one in ordered if one.id not in replaced)


def _anchored(insertion: Insertion, view: View) -> bool:
    end = insertion.end
    if end > len(view.keys) or insertion.anchor != view.anchor(end):
        return False
    return view.opens_message(end) and view.opens_message(insertion.start)


def removed(insertions: Sequence[Insertion], view: View) -> frozenset[int]:
    """Gives the indexes of the messages that leave; system text inside a removed span stays."""
    gone: set[int] = set()
    for one in insertions:
        if one.start < one.end:
            gone.update(range(view.place(one.start), view.place(one.end)))
    messages = view.messages
    return frozenset([index for index in gone if messages[index].role not in SYSTEM_ROLES])


def size(insertions: Sequence[Insertion], view: View) -> int:
    """Gives the tokens of the body with these insertions, by our own estimate."""
    return (
        view.total()
        - sum([view.tokens[index] for index in removed(insertions, view)])
        + sum([one.tokens for one in insertions])
    )


def apply(insertions: Sequence[Insertion], view: View, writer: Writer, *, alternate: bool = False) -> tuple[Piece, ...]:
    """Gives the forwarded messages: the client's own bytes, and each insertion at its place.

    With `alternate` no message of ours stands beside another user message: it becomes a part of that one.
    """
    gone = removed(insertions, view)
    unbound = frozenset(seal for one in insertions for seal in one.stripped)
    waiting = sorted(insertions, key=lambda one: one.end)
    pieces: list[Piece] = []
    into_next: list[Insertion] = []
    position = 0
    for index, message in enumerate((*view.messages, None)):
        while position < len(waiting) and view.place(waiting[position].end) <= index:
            one = waiting[position]
            inside = one.placement == "into_previous" or (alternate and one.placement == "message")
            _place(one, pieces, into_next, writer, message, inside=inside)
            position += 1
        if message is None or index in gone:
            continue
        bare = bool(unbound) and not unbound.isdisjoint(seals((message,)))
        piece = Piece(stripped(message.raw) if bare else message.raw, message.role, message)
        if into_next and message.role == "user":
            for one in reversed(into_next):
                piece = _extend(piece, one, writer, before=True)
            into_next.clear()
        pieces.append(piece)
    # A place inside a user message that the client has taken out: the words still go out, as a message of their own.
    pieces.extend(Piece(writer.user_message(one.text), "user", None, (one.id,)) for one in into_next)
    return tuple(pieces)


def _place(
    one: Insertion,
    pieces: list[Piece],
    into_next: list[Insertion],
    writer: Writer,
    following: Message | None,
    *,
    inside: bool,
) -> None:
    if one.raw:
        pieces.append(Piece(one.raw.encode(), "assistant", None, (one.id,)))
    elif inside and pieces and pieces[-1].role == "user":
        pieces[-1] = _extend(pieces[-1], one, writer, before=False)
    elif one.placement == "into_next" or (inside and following is not None and following.role == "user"):
        into_next.append(one)  # a client that wrote on in the message that the words stood in is still answered in it
    else:
        pieces.append(Piece(writer.user_message(one.text), "user", None, (one.id,)))


def _extend(piece: Piece, one: Insertion, writer: Writer, *, before: bool) -> Piece:
    raw = writer.extend_message(piece.raw, one.text, before=before)
    return Piece(raw, piece.role, piece.source, (*piece.insertions, one.id))
