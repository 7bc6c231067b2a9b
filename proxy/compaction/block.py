"""Writes one insertion: chooses what of the words and the log fits, and freezes the text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b

import msgspec

from proxy.compaction import blocks
from proxy.compaction.digest import LogLine
from proxy.compaction.draft import Draft
from proxy.compaction.insertion import Insertion, Placement, Reason, Reasoning
from proxy.compaction.log import fit
from proxy.compaction.rewrite import removed
from proxy.pins.keep import Kept, give_way
from proxy.pins.model import Entry, Pin
from proxy.tokens import MESSAGE_TOKENS


class Span(msgspec.Struct, frozen=True):
    """Where a block stands: keys `start` up to `end` leave, turns `first` to `last` are told."""

    start: int
    end: int
    first: int
    last: int
    reasoning: Reasoning = ""  # what becomes of signed reasoning behind the block
    stripped: tuple[str, ...] = ()


class Content(msgspec.Struct, frozen=True):
    """What a block is about: `pins` go to part one, all else to the work log."""

    pins: Sequence[Pin] = ()
    entries: Sequence[Entry] = ()  # history
    past: Sequence[Pin] = ()  # pins that hold no longer
    withdrawn: Sequence[Pin] = ()  # pins that a person ended by hand
    lines: Sequence[LogLine] = ()
    summary: str = ""  # written by a model
    log_room: int = 0  # tokens of our estimate that the lines may take

    @property
    def humans(self) -> tuple[str, ...]:
        """Keys (hex) of the human turns that it stands for."""
        said: list[Pin | Entry] = [*self.pins, *self.entries, *self.past]
        return tuple(dict.fromkeys(item.key.hex() for item in said))


def write_block(
    draft: Draft, span: Span, reason: Reason, placement: Placement, content: Content, replaces: Sequence[str] = ()
) -> tuple[Insertion, tuple[str, ...]]:
    """Gives the insertion and the flags of what had to give way."""
    count = draft.tools.count
    if placement == "message" and draft.policy.strict:
        placement = "into_previous"  # frozen with the text: that roles must alternate may be forgotten until the replay
    form = "|".join(filter(None, (reason, placement, span.reasoning)))
    identity = _identity(draft, span, form, content)
    kept = _kept(draft, content, replaces)
    gone = content.withdrawn if reason == "pins" else _newly_ended(draft, replaces)
    images = {turn.key: len(turn.images) for turn in (*draft.view.base, *draft.view.humans) if turn.images}
    words = blocks.user_words(kept.pins, gone, span.first, span.last, images)
    steps = fit(content.lines, content.log_room, count, identity) if content.lines else ()
    if content.summary:
        steps = ((span.first, f"summary by a model: {blocks.escape(content.summary)}"), *steps)
    log = blocks.work_log(_log(kept, content, steps, identity, images), span.first, span.last)
    text = "\n\n".join(part for part in (words, log) if part)
    log_tokens = sum(count(line) + 1 for _, line in steps)
    tokens = count(text) + MESSAGE_TOKENS
    one = Insertion(
        id=identity,
        branch=draft.branch,
        start=span.start,
        end=span.end,
        anchor=draft.view.anchor(span.end),
        placement=placement,
        text=text,
        reason=reason,
        pins=tuple(item.pin.id for item in kept.pins if item.verbatim),
        partial=(*(item.pin.id for item in kept.pins if not item.verbatim), *(pin.id for pin in kept.left)),
        first_turn=span.first,
        last_turn=span.last,
        tokens=tokens,
        pin_tokens=tokens - log_tokens,
        log_tokens=log_tokens,
        humans=content.humans,
        withdrawn=tuple(filter(None, map(blocks.ended_mark, [*gone, *(item.pin for item in kept.pins)]))),
        covers=_covers(draft, span),
        replaces=tuple(replaces),
        reasoning=span.reasoning,
        stripped=span.stripped,
    )
    return one, kept.flags


def _covers(draft: Draft, span: Span) -> tuple[str, ...]:
    if span.start == span.end:
        return ()
    view = draft.view
    probe = Insertion("", "", span.start, span.end, "", "message", "", "compaction")
    return tuple(view.messages[index].digest for index in sorted(removed((probe,), view)))


def _identity(draft: Draft, span: Span, form: str, content: Content) -> str:
    """An id by place and content, not by chance: the same request planned again gets the same text."""
    pins = (pin.id for pin in (*content.pins, *content.withdrawn))
    told = "|".join((*pins, *(entry.key.hex() for entry in content.entries)))
    seed = f"{form}|{span.start}|{span.end}|{draft.view.anchor(span.end)}|{span.first}|{span.last}|{told}"
    # By an id that stands, or that what stands took over from, the store and the next body would mean the old words.
    taken = {name for one in draft.insertions for name in (one.id, *one.replaces)}
    while (identity := blake2b(seed.encode(), digest_size=6).hexdigest()) in taken:
        seed += "|again"
    return identity


def _newly_ended(draft: Draft, replaces: Sequence[str]) -> list[Pin]:
    """Pins that stand in front of a new block (in insertions that stay, or in the first message) and hold no longer.

    Only those that no insertion that stays has named yet.
    """
    view = draft.view
    staying = [one for one in draft.insertions if one.id not in replaces]
    shown = {pin for one in staying for pin in (*one.pins, *one.partial)}
    told = {mark for one in staying for mark in one.withdrawn}
    first = view.keys[0].hash if view.keys else b""
    before = [pin for pin in view.ledger.pins if pin.id in shown or pin.key == first]
    return [pin for pin in before if (mark := blocks.ended_mark(pin)) and mark not in told]


def _kept(draft: Draft, content: Content, replaces: Sequence[str]) -> Kept:
    """Lets pins and history give way within what other insertions leave of the pin budget."""
    policy = draft.policy
    ratio = max(policy.ratio, 0.01)
    used = sum(one.pin_tokens for one in draft.insertions if one.id not in replaces)
    room = max(int(policy.pin_tokens / ratio) - used - MESSAGE_TOKENS, 0)
    frame = 60 if policy.pins_hard else 0  # tokens of our own headings count against a limit that a person set
    chosen = () if policy.history == "off" else tuple(content.entries)
    return give_way(
        content.pins,
        chosen,
        max(room - frame, 0),
        draft.tools.count,
        int(policy.budget.size / ratio),
        hard=policy.pins_hard,
        short=policy.history == "short",
    )


def _log(
    kept: Kept, content: Content, steps: Sequence[tuple[int, str]], identity: str, images: Mapping[bytes, int]
) -> list[str]:
    """Puts steps, history and ended pins in the order of their turns."""
    answered = sorted(line.turn for line in content.lines if line.kind == "answer")
    told: list[tuple[int, str]] = list(steps)
    if kept.folded:
        told.append(
            (kept.folded[0].turn, blocks.one_line(f"user said in {kept.folded_line} (block {identity})", 4_000))
        )
    for line in kept.history:
        done = next((turn for turn in answered if turn > line.entry.turn), 0)
        told.append((line.entry.turn, blocks.history_line(line.entry, line.text, done=done)))
        pictures = blocks.image_lines(line.entry, images.get(line.entry.key, 0))
        told.extend((line.entry.turn, picture) for picture in pictures)
    told.extend((pin.turn, blocks.ended_goal_line(pin, pin.text)) for pin in content.past)
    told.sort(key=lambda item: item[0])
    return [text for _, text in told]
