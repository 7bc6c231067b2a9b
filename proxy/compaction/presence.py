"""Which of the user's words stand in a body (promise P1: the turn where it first stood, or our block, nothing else)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from proxy.compaction.insertion import Insertion
from proxy.compaction.rewrite import removed
from proxy.compaction.thinking import unread_head
from proxy.compaction.view import View


class Presence(msgspec.Struct, frozen=True):
    """The active pins of a branch, by id: verbatim in the body, only as an excerpt, or missing."""

    verbatim: tuple[str, ...]
    partial: tuple[str, ...]
    missing: tuple[str, ...]

    @property
    def active(self) -> int:
        """How many pins are active."""
        return len(self.verbatim) + len(self.partial) + len(self.missing)


def standing(view: View, insertions: Sequence[Insertion]) -> dict[bytes, tuple[str, ...]]:
    """Gives the human words that stand in the body, by turn key: the texts of the messages that still carry them."""
    gone, unread = removed(insertions, view), unread_head(view)
    found: dict[bytes, tuple[str, ...]] = {}
    for key in view.keys:
        if key.human is not None and key.message not in gone and key.message >= unread:
            found[key.hash] = (*found.get(key.hash, ()), key.human.text)
    return found


def presence(view: View, insertions: Sequence[Insertion]) -> Presence:
    """Says of each active pin whether it stands in the body."""
    words = standing(view, insertions)
    shown = {pin for one in insertions for pin in one.pins}
    excerpts = {pin for one in insertions for pin in one.partial}
    verbatim: list[str] = []
    partial: list[str] = []
    missing: list[str] = []
    for pin in view.ledger.active:
        if pin.id in shown or any(pin.text in text for text in words.get(pin.key, ())):
            verbatim.append(pin.id)
        else:
            (partial if pin.id in excerpts else missing).append(pin.id)
    return Presence(tuple(verbatim), tuple(partial), tuple(missing))
