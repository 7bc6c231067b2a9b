"""Own compaction: where to cut, and the block that takes the place of what leaves.

Log-structured: a cut turns the oldest part of the tail into one more block and leaves all bytes before it alone. Blocks
merge, rarely: when the log has grown past its bound, when the words no longer fit their budget, and when a word in one
of them was replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate

from msgspec.structs import replace

from proxy.compaction.block import Content, Span, write_block
from proxy.compaction.blocks import ended_mark
from proxy.compaction.digest import LogLine, digest
from proxy.compaction.draft import Draft
from proxy.compaction.invariants import SYSTEM_ROLES, forbidden
from proxy.compaction.thinking import treatment
from proxy.compaction.view import View
from proxy.pins.model import Entry, Pin

_TRIES = 4  # cuts tried, each leaving less behind
_LEAST_LOG = 200  # tokens that a block's log may always take


def make_cut(draft: Draft) -> Draft | None:
    """Gives the draft after the best cut, or None when nothing may leave."""
    places = _places(draft)
    floor = draft.floor
    best: Draft | None = None
    for _ in range(_TRIES):
        tried = _cut_at(draft, places, floor)
        if tried is None:
            return best
        best = tried
        over = tried.predict(tried.insertions) - draft.limit
        if over <= 0:
            return best
        tail = _tail(draft.view)[draft.view.place(best.fresh[-1].end)] * draft.policy.ratio
        floor = int(min(tail - over, tail - 1))
        if floor <= 0 and best.fresh[-1].end == places[-1]:
            return best
    return best


def resting_place(draft: Draft) -> int | None:
    """Gives the last key before which a cut may lie so that the newest turns stay, None when there is none."""
    tail, ratio = _tail(draft.view), draft.policy.ratio
    standing = max((one.end for one in draft.insertions if one.reason == "compaction"), default=0)
    legal = [key for key in _places(draft) if key > standing]
    return next((key for key in reversed(legal) if tail[draft.view.place(key)] * ratio >= draft.floor), None)


def _places(draft: Draft) -> list[int]:
    """The keys before which a cut may lie, in order."""
    view = draft.view
    banned = forbidden(draft.policy.invariants, view.messages)
    return [key for key in range(1, len(view.keys)) if view.opens_message(key) and view.place(key) not in banned]


def _tail(view: View) -> list[int]:
    """Tokens of the messages from each index to the end."""
    return [*reversed(list(accumulate(reversed(view.tokens)))), 0]


def _cut_at(draft: Draft, places: Sequence[int], floor: int) -> Draft | None:
    """Cuts so that the fewest whole groups that reach `floor` tokens stay behind the block."""
    view, ratio = draft.view, draft.policy.ratio
    tail = _tail(view)
    standing = [one for one in draft.insertions if one.reason == "compaction"]
    merge = _must_merge(draft)
    start = _first(draft) if merge or not standing else max(standing[-1].end, view.sealed)
    legal = [key for key in places if key > start]
    if not legal:
        return None
    reaching = [key for key in legal if tail[view.place(key)] * ratio >= floor]
    end = reaching[-1] if reaching else legal[0] if not draft.forced else legal[-1]
    cut = _with_block(draft, start, end, merge=merge)
    if not cut.fresh:
        return None
    if not merge and standing and _outgrown(cut):
        merged = _with_block(draft, _first(draft), end, merge=True)
        cut = merged if merged.fresh else cut
    return cut


def _outgrown(cut: Draft) -> bool:
    """Whether all logs together have passed their bound, or the words didn't fit beside those of older blocks."""
    logs = sum(one.log_tokens for one in cut.insertions)
    return logs > _log_bound(cut) or bool(cut.fresh[-1].partial)


def _log_bound(draft: Draft) -> int:
    """Tokens (ours) that all logs may take: what the target leaves beside the recent turns, less the fixed part."""
    policy = draft.policy
    size = min(policy.budget.size or draft.limit, draft.limit)
    return max(int((policy.target - policy.keep_recent) * size / max(policy.ratio, 0.01)), _LEAST_LOG)


def _must_merge(draft: Draft) -> bool:
    """Whether a word in an older block was replaced or ended since."""
    older = [one for one in draft.insertions if one.reason != "pins"]
    shown = {pin for one in older for pin in (*one.pins, *one.partial)}
    told = {mark for one in older for mark in one.withdrawn}
    marks = {ended_mark(pin) for pin in draft.view.ledger.pins if pin.id in shown} - {""}
    return bool(marks - told)


def _first(draft: Draft) -> int:
    """The first key that may leave: behind what keeps its place."""
    return max(_behind_goal(draft), draft.view.sealed)


def _behind_goal(draft: Draft) -> int:
    """The first key behind the goal (or the client's summary), while that may keep its place; else 0."""
    view, policy = draft.view, draft.policy
    first = view.keys[0]
    behind = next((key for key in range(1, len(view.keys)) if view.opens_message(key)), 0)
    if first.kind not in ("u", "s") or view.messages[first.message].role != "user":
        return 0
    if first.kind == "u":
        pins = [pin for pin in view.ledger.pins if pin.key == first.hash]
        binds = not pins or any(pin.active for pin in pins)
        size = policy.budget.size or draft.limit
        if not binds or view.tokens[first.message] * policy.ratio > size / 4:
            return 0
    return behind


def _with_block(draft: Draft, start: int, end: int, *, merge: bool) -> Draft:
    """The draft with a block for keys `start` to `end`; with `merge`, older blocks and restores are told anew in it."""
    view = draft.view
    movable = [
        one
        for one in draft.insertions
        if one.reason not in ("pins", "recall") and view.sealed <= one.start and one.end <= end
    ]
    merged = movable if merge else []
    replaces = [one.id for one in merged]
    numbers = {number for key, number in zip(view.keys[start:end], view.numbers[start:end], strict=True) if key.human}
    retold = {key for one in merged for key in one.humans}
    left = _left(draft, start, end, numbers, retold)
    pins = [pin for pin in view.ledger.active if left(pin)]
    past = [pin for pin in view.ledger.pins if not pin.active and left(pin)]
    entries = [entry for entry in view.ledger.history if left(entry)]
    turns = [*(pin.turn for pin in (*pins, *past)), *(entry.turn for entry in entries)]
    first = min([view.numbers[start], *turns])
    last = view.numbers[end - 1]
    others = sum(one.log_tokens for one in draft.insertions if one.id not in replaces)
    room = max(_log_bound(draft) - others, _LEAST_LOG)
    summary = draft.memory.summary
    fitting = summary if summary and summary.start >= start and summary.end <= end else None
    one, flags = write_block(
        draft,
        Span(start, end, first, last, *treatment(view, end, draft.memory.insertions, draft.memory.refused)),
        "compaction",
        "message",
        Content(
            pins=pins,
            entries=entries,
            past=past,
            lines=_lines(view, start, end),
            summary=fitting.text if fitting else "",
            log_room=room,
        ),
        replaces,
    )
    base = replace(draft, fresh=tuple(item for item in draft.fresh if item.id not in replaces))
    return base.with_insertion(one, flags=flags)


def _left(draft: Draft, start: int, end: int, numbers: set[int], retold: set[str]) -> Callable[[Pin | Entry], bool]:
    """Gives a test whether words leave the body with this cut, or stood in what is told anew."""
    leaving = {key.hash for key in draft.view.keys[start:end] if key.human}

    def test(item: Pin | Entry) -> bool:
        return (item.key in leaving and item.turn in numbers) or (bool(item.key) and item.key.hex() in retold)

    return test


def _lines(view: View, start: int, end: int) -> tuple[LogLine, ...]:
    """The log lines of the messages that leave, with their turn numbers."""
    begin, stop = view.place(start), view.place(end)
    indexes = [index for index in range(begin, stop) if view.messages[index].role not in SYSTEM_ROLES]
    number_of = {key.message: view.numbers[position] for position, key in enumerate(view.keys)}
    numbers = {position: number_of.get(index, 0) for position, index in enumerate(indexes)}
    return digest([view.messages[index] for index in indexes], numbers)
