"""The provider's own compaction on demand, for signed reasoning: its block in the place of the oldest turns.

The provider writes the summary and signs it, so the reasoning in the turns that follow it directly stays valid. It is
asked for in the background, with the messages of a body that was sent already; the block is used with the first request
after it came, and the user's words go behind the newest results, where nothing signed stands behind them.
"""

from __future__ import annotations

from hashlib import blake2b

import msgspec
from msgspec.structs import replace

from proxy.compaction.block import Content, Span, write_block
from proxy.compaction.cut import resting_place
from proxy.compaction.draft import Draft
from proxy.compaction.insertion import Insertion
from proxy.compaction.invariants import SYSTEM_ROLES
from proxy.compaction.presence import standing
from proxy.compaction.quotes import unverified
from proxy.compaction.rewrite import apply
from proxy.compaction.thinking import Condensed, may_condense, newest_place
from proxy.compaction.view import View
from proxy.tokens import MESSAGE_TOKENS


class Order(msgspec.Struct, frozen=True):
    """What the provider is asked to condense: messages as they were sent, and the place that its block will take."""

    messages: tuple[bytes, ...]
    end: int  # first key that stays
    anchor: str
    within: tuple[str, ...]  # ids of our insertions in these messages


def order(draft: Draft) -> Order | None:
    """Gives what can be condensed now, None when nothing may be."""
    view = draft.view
    if not may_condense(view, draft.insertions, draft.memory.insertions, draft.memory.refused):
        return None
    end = resting_place(draft)
    if end is None or not _cuttable(view, end):
        return None
    pieces = apply(draft.insertions, view, draft.tools.writer, alternate=draft.policy.strict)
    first = view.messages[view.place(end)]
    behind = next(at for at, piece in enumerate(pieces) if piece.source is first)
    within = _within(draft, end)
    return Order(tuple(piece.raw for piece in pieces[:behind]), end, view.anchor(end), within)


def fits(block: Condensed, draft: Draft) -> bool:
    """Whether a block still stands for just what is in front of the place that it was made for."""
    view, end = draft.view, block.end
    return (
        end < len(view.keys)
        and view.anchor(end) == block.anchor
        and _cuttable(view, end)
        and _within(draft, end) == block.within
    )


def swapped(draft: Draft) -> Draft:
    """Puts a block that has come in its place, and the words that it stands for behind the newest results."""
    block, place = draft.memory.block, newest_place(draft.view)
    if block is None or place is None or not fits(block, draft):
        return draft
    cut = draft.with_insertion(_insertion(draft, block))
    if not cut.fresh:
        return cut  # an upstream has refused this block
    said = [turn.text for turn in (*draft.view.base, *draft.view.humans)]
    wrong = unverified([block.text], said)
    if wrong:
        note = f"no human turn holds: {'; '.join(wrong)[:400]}"
        cut = replace(cut, flags=(*cut.flags, "unverified_user_quote"), notes=(*cut.notes, note))
    return _with_words(cut, place[0])


def _with_words(cut: Draft, end: int) -> Draft:
    """Adds every word of the user that stands nowhere any more, binding or not."""
    ledger = cut.view.ledger
    words = standing(cut.view, cut.insertions)
    covered = {key for one in cut.insertions for key in one.humans}
    lost = set(cut.presence().missing)
    pins = [pin for pin in ledger.pins if pin.id in lost]
    past = [p for p in ledger.pins if not p.active and p.key and p.key not in words and p.key.hex() not in covered]
    entries = [one for one in ledger.history if one.key not in words and one.key.hex() not in covered]
    turns = sorted([*(pin.turn for pin in (*pins, *past)), *(one.turn for one in entries)])
    if not turns:
        return cut
    content = Content(pins=pins, entries=entries, past=past)
    span = Span(end, end, turns[0], turns[-1])
    one, flags = write_block(cut, span, "restore", "into_previous", content)
    return cut.with_insertion(one, flags=flags)


def _insertion(draft: Draft, block: Condensed) -> Insertion:
    view = draft.view
    probe = Insertion("", draft.branch, 0, block.end, block.anchor, "message", "", "compaction", raw=block.raw)
    numbers = view.numbers[: block.end]
    return msgspec.structs.replace(
        probe,
        id=blake2b(f"condensed|{block.anchor}|{block.raw}".encode(), digest_size=6).hexdigest(),
        first_turn=min(numbers, default=0),
        last_turn=max(numbers, default=0),
        tokens=draft.tools.count(block.text) + MESSAGE_TOKENS,
        covers=tuple(message.digest for message in view.messages[: view.place(block.end)]),
        replaces=block.within,
    )


def _within(draft: Draft, end: int) -> tuple[str, ...]:
    return tuple(one.id for one in draft.insertions if one.end <= end)


def _cuttable(view: View, end: int) -> bool:
    """Whether the model's answer stands behind the place, and no system text in front of it, which would go too."""
    place = view.place(end)
    before = view.messages[:place]
    return view.messages[place].role == "assistant" and not any(one.role in SYSTEM_ROLES for one in before)
