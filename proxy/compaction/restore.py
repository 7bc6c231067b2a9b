"""Puts back the user's words that a compaction outside (the agent's, a sliding window) took out of the body."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from proxy.compaction.block import Content, Span, write_block
from proxy.compaction.draft import Draft
from proxy.compaction.insertion import Placement
from proxy.compaction.presence import standing
from proxy.compaction.rewrite import removed
from proxy.compaction.thinking import binds, newest_place
from proxy.pins.model import Entry, Pin


def restored(draft: Draft) -> Draft:
    """Adds one insertion with every word of the user that stands neither in the body nor in an insertion."""
    view = draft.view
    lost = set(draft.presence().missing)
    if not (lost or view.base):
        return draft
    covered = {key for one in draft.insertions for key in one.humans}
    words = standing(view, draft.insertions)
    base = {turn.key for turn in view.base if turn.key not in words and turn.key.hex() not in covered}
    pins = [pin for pin in view.ledger.pins if pin.message and pin.id in lost]
    ended = [pin for pin in view.ledger.pins if not pin.active and pin.key in base]
    entries = [entry for entry in view.ledger.history if entry.key in base]
    if not pins and not entries and not ended:
        return draft
    place = newest_place(view) if binds(view.messages) else _place(draft)
    if place is None:
        return replace(draft, flags=(*draft.flags, "restore_waits"))
    end, placement = place
    turns = _turns(pins, entries, ended)
    content = Content(pins=pins, entries=entries, past=ended)
    one, flags = write_block(draft, Span(end, end, turns[0], turns[-1]), "restore", placement, content)
    return draft.with_insertion(one, flags=flags)


def added(draft: Draft) -> Draft:
    """Appends what people changed by hand to the newest turn: pins added, pins withdrawn; frozen there from then on."""
    view = draft.view
    lost = set(draft.presence().missing)
    pins = [pin for pin in view.ledger.pins if pin.id in lost]
    withdrawn = _withdrawn(draft)
    if not pins and not withdrawn:
        return draft
    place = newest_place(view) if binds(view.messages) else _newest(draft)
    if place is None:
        return replace(draft, flags=(*draft.flags, "restore_waits"))
    end, placement = place
    number = view.numbers[-1] if view.numbers else 0
    content = Content(pins=pins, withdrawn=withdrawn)
    one, flags = write_block(draft, Span(end, end, number, number), "pins", placement, content)
    return draft.with_insertion(one, flags=flags)


def _newest(draft: Draft) -> tuple[int, Placement]:
    """Gives the place of new words: in the newest user message, or behind the results that came after it.

    Where roles must alternate it is always that message, for the user may be the next to speak.
    """
    view = draft.view
    if view.messages and view.messages[-1].role == "user":
        return len(view.keys), "into_previous"
    if draft.policy.strict:
        gone = removed(draft.insertions, view)
        users = [
            key.message for key in view.keys if view.messages[key.message].role == "user" and key.message not in gone
        ]
        if users:
            return next(place for place, key in enumerate(view.keys) if key.message > users[-1]), "into_previous"
    return len(view.keys), "message"


def _withdrawn(draft: Draft) -> list[Pin]:
    """Pins that a person ended by hand while their words still stand in the body, and that nothing has said so far."""
    ended = [pin for pin in draft.view.ledger.pins if pin.by_hand and not pin.active]
    if not ended:
        return []
    told = {mark for one in draft.insertions for mark in one.withdrawn}
    shown = {pin for one in draft.insertions for pin in one.pins}
    words = standing(draft.view, draft.insertions)
    return [pin for pin in ended if (pin.id in shown or pin.key in words) and pin.id not in told]


def _turns(pins: Sequence[Pin], entries: Sequence[Entry], ended: Sequence[Pin]) -> list[int]:
    return sorted([*(pin.turn for pin in pins), *(entry.turn for entry in entries), *(pin.turn for pin in ended)])


def _place(draft: Draft) -> tuple[int, Placement]:
    """Gives the place of a restore: behind the goal where the body still begins with it, else before everything.

    Before a summary, not behind it: the summary is younger than the words that are put back, and a summary that calls a
    follow-up "the first request" must not be read before the real one.
    """
    view, strict = draft.view, draft.policy.strict
    if not view.keys:
        return 0, "message"
    if view.sealed:
        return _behind_seal(draft)
    first = view.keys[0]
    goals = {pin.key for pin in view.ledger.pins if pin.kind == "goal"}
    behind = next((end for end in range(1, len(view.keys)) if view.opens_message(end)), 0)
    if first.kind == "u" and first.hash in goals and behind:
        return behind, "message"
    if view.messages[first.message].role == "user" and strict:
        return 0, "into_next"
    return 0, "message"


def _behind_seal(draft: Draft) -> tuple[int, Placement]:
    """Gives the place of a restore where the server compacted: before the newest user message, else at the end."""
    view = draft.view
    users = [
        place
        for place in range(view.sealed, len(view.keys))
        if view.opens_message(place) and view.messages[view.keys[place].message].role == "user"
    ]
    if not users:
        return len(view.keys), "message"
    return users[-1], "into_next" if draft.policy.strict else "message"
