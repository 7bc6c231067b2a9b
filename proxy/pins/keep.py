"""What is kept when the pins and the history don't fit: the order of giving way.

History goes first, oldest first; then what no longer binds; then facts, preferences, commitments and decisions. Goals,
corrections and constraints never disappear: they may grow to half of the whole budget, and beyond that they are shown
as excerpts, the longest first, the goal and the newest correction last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
from msgspec.structs import replace

from proxy.pins.model import Entry, Kind, Pin

Count = Callable[[str], int]

SHORT = 120  # characters of a history entry in its short form
OPENING = 24  # characters of a folded entry that its line still gives
FLOOR = 160  # characters that an excerpt is cut down to before the oldest pins lose more
LINE = 80  # characters of a first line that always stays
TELLING = 24  # characters of a first line that says something by itself
OVERHEAD = 10  # tokens for the line above a pin or an entry
_LEAVE: tuple[Kind, ...] = ("fact", "preference", "commitment", "decision")
_DEAR: tuple[Kind, ...] = ("correction", "goal")
_WIDEST = 12  # characters of a token, at most: bounds the search for a length that fits


class Shown(msgspec.Struct, frozen=True):
    """A pin and the text that is shown for it."""

    pin: Pin
    text: str
    verbatim: bool


class Line(msgspec.Struct, frozen=True):
    """A history entry and the text that is shown for it."""

    entry: Entry
    text: str
    full: bool


class Kept(msgspec.Struct, frozen=True):
    """What stays: pins and history in the order in which they were said, and what had to give way."""

    pins: tuple[Shown, ...]
    history: tuple[Line, ...]
    folded: tuple[Entry, ...] = ()  # entries that stand for one line together
    openings: bool = False  # whether that line still gives each one's first words
    left: tuple[Pin, ...] = ()  # pins that are not shown at all
    flags: tuple[str, ...] = ()  # pins_over_budget, pin_excerpted, pin_left_out

    @property
    def folded_line(self) -> str:
        """The one line that stands for the folded entries, "" without any."""
        return fold_line(self.folded, openings=self.openings)

    def tokens(self, count: Count) -> int:
        """Gives the tokens of all shown texts with their headers."""
        shown = [item.text for item in self.pins] + [line.text for line in self.history]
        folded = count(self.folded_line) if self.folded else 0
        return sum(count(text) + OVERHEAD for text in shown) + folded


def archive_id(digest: str) -> str:
    """Gives the short archive id of a message."""
    return digest[:8]


def fold_line(entries: Sequence[Entry], *, openings: bool = False) -> str:
    """Gives `turns 2-9, archive ID` for entries that are no longer shown one by one, with each one's first words."""
    if not entries:
        return ""
    if openings:
        words = " · ".join(" ".join(entry.text[:OPENING].split()) for entry in entries)
        return f"{fold_line(entries)}, beginning: {words}"
    first, last = entries[0], entries[-1]
    turns = f"turns {first.turn}-{last.turn}" if last.turn != first.turn else f"turn {first.turn}"
    return f"{turns}, archive {archive_id(first.message)}"


def shorten(text: str, digest: str) -> str:
    """Gives the first characters of a history entry and its archive id; a short text stays whole."""
    if len(text) <= SHORT:
        return text
    return f"{text[:SHORT]}… [{len(text)} characters, archive {archive_id(digest)}]"


def excerpt(text: str, keep: int, digest: str) -> str:
    """Gives head and tail of a text with a mark between them that says how much is missing and where it lies."""
    if len(text) <= keep:
        return text
    where = f", archive {archive_id(digest)}" if digest else ""
    tail = keep // 4 if keep >= FLOOR else 0
    head = keep - tail
    end = text[len(text) - tail :] if tail else ""
    return f"{text[:head]}\n[… kept {head + tail} of {len(text)} characters{where}]" + (f"\n{end}" if end else "")


def give_way(
    pins: Sequence[Pin],
    history: Sequence[Entry],
    limit_tokens: int,
    count: Count,
    budget: int,
    *,
    hard: bool = False,
    short: bool = False,
) -> Kept:
    """Gives what is shown within the limit of pins and history.

    Goals, corrections and constraints may take up to half of `budget` (the whole body's) beyond `limit_tokens`, unless
    `hard` says that the limit was set by a person. `short` shows all history in its short form from the start.
    """
    kept = Kept(
        tuple(Shown(pin, pin.text, verbatim=True) for pin in pins),
        tuple(_line(entry, full=not short) for entry in history),
    )
    if kept.tokens(count) <= limit_tokens:
        return kept
    core = [pin for pin in pins if _is_core(pin)]
    rest = sum(count(pin.text) + OVERHEAD for pin in pins)
    kept = _history(kept, limit_tokens - rest, count)
    if kept.tokens(count) <= limit_tokens:
        return kept
    kept = _drop(kept, limit_tokens, count)
    if kept.tokens(count) <= limit_tokens:
        return kept
    most = limit_tokens if hard else max(limit_tokens, budget // 2)
    kept = replace(kept, flags=(*kept.flags, "pins_over_budget"))
    return _excerpted(kept, most, count) if core and kept.tokens(count) > most else kept


def _line(entry: Entry, *, full: bool) -> Line:
    text = entry.text if full else shorten(entry.text, entry.message)
    return Line(entry, text, text == entry.text)


def _is_core(pin: Pin) -> bool:
    return pin.active and pin.kind not in _LEAVE


def _history(kept: Kept, room: int, count: Count) -> Kept:
    """Makes the oldest entries short until the history fits the room, then folds the oldest short ones."""
    lines = list(kept.history)
    costs = [count(line.text) + OVERHEAD for line in lines]
    total = sum(costs)
    for index, line in enumerate(lines):
        if total <= room:
            break
        lines[index] = _line(line.entry, full=False)
        cost = count(lines[index].text) + OVERHEAD
        total += cost - costs[index]
        costs[index] = cost
    for openings in (True, False):
        cut, rest = 0, total
        while cut < len(lines) and rest + _folded_cost(lines[:cut], count, openings=openings) > room:
            rest -= costs[cut]
            cut += 1
        if cut < len(lines) or rest + _folded_cost(lines, count, openings=openings) <= room:
            break
    folded = tuple(line.entry for line in lines[:cut])
    return replace(kept, history=tuple(lines[cut:]), folded=folded, openings=openings and bool(folded))


def _folded_cost(lines: Sequence[Line], count: Count, *, openings: bool) -> int:
    return count(fold_line([line.entry for line in lines], openings=openings)) + OVERHEAD if lines else 0


def _drop(kept: Kept, limit: int, count: Count) -> Kept:
    """Leaves out what no longer binds, then facts, preferences, commitments and decisions, oldest first."""
    order = [item for item in kept.pins if not item.pin.active]
    for kind in _LEAVE:
        order += [item for item in kept.pins if item.pin.active and item.pin.kind == kind]
    total = kept.tokens(count)
    gone: list[Shown] = []
    for item in order:
        if total <= limit:
            break
        total -= count(item.text) + OVERHEAD
        gone.append(item)
    if not gone:
        return kept
    ids = {item.pin.id for item in gone}
    flags = ("pin_left_out",) if any(item.pin.active for item in gone) else ()
    return replace(
        kept,
        pins=tuple(item for item in kept.pins if item.pin.id not in ids),
        left=tuple(item.pin for item in kept.pins if item.pin.id in ids),
        flags=(*kept.flags, *flags),
    )


def _excerpted(kept: Kept, limit: int, count: Count) -> Kept:
    """Cuts the longest texts to a common length, then the oldest to their first line, the dearest last."""
    dear = _dearest(kept)
    common = [item.pin.id for item in kept.pins if item.pin.id not in dear]
    kept = _level(kept, common, limit, count)
    for identity in common:  # oldest first
        if kept.tokens(count) <= limit:
            return kept
        kept = _cut(kept, [identity], LINE)
    for identity in dear:
        if kept.tokens(count) > limit:
            kept = _level(kept, [identity], limit, count)
        if kept.tokens(count) > limit:
            kept = _cut(kept, [identity], LINE)
    return kept


def _dearest(kept: Kept) -> list[str]:
    """Gives the ids of the newest correction and of the current goal, in the order in which they are cut."""
    newest = (next((one.pin for one in reversed(kept.pins) if one.pin.kind == kind), None) for kind in _DEAR)
    return [pin.id for pin in newest if pin]


def _cut(kept: Kept, ids: Sequence[str], length: int) -> Kept:
    """Cuts the pins with these ids to a length; LINE keeps the first line only."""

    def cut(item: Shown) -> Shown:
        if item.pin.id not in ids:
            return item
        text = item.pin.text
        if length <= LINE:
            first = len(item.pin.text.split("\n", 1)[0])
            keep = min(LINE, first if first >= TELLING else LINE)  # a first line may be a lone tag or heading
            shown = excerpt(text, keep, item.pin.message)
        else:
            shown = excerpt(text, length, item.pin.message)
        # The mark costs characters too: a text that is hardly longer than its excerpt stays whole.
        shorter = len(shown) < len(text)
        return Shown(item.pin, shown if shorter else text, verbatim=not shorter)

    pins = tuple(cut(item) for item in kept.pins)
    flags = kept.flags
    if any(not item.verbatim for item in pins) and "pin_excerpted" not in flags:
        flags = (*flags, "pin_excerpted")
    return replace(kept, pins=pins, flags=flags)


def _level(kept: Kept, ids: Sequence[str], limit: int, count: Count) -> Kept:
    """Finds the greatest common length at which the texts fit, never below the floor."""
    low = FLOOR
    longest = max((len(item.pin.text) for item in kept.pins if item.pin.id in ids), default=0)
    high = min(longest, limit * _WIDEST)
    best = _cut(kept, ids, low)
    if best.tokens(count) > limit:
        return best
    while high - low > max(16, low // 50):
        middle = (low + high) // 2
        tried = _cut(kept, ids, middle)
        if tried.tokens(count) <= limit:
            low, best = middle, tried
        else:
            high = middle
    return best
