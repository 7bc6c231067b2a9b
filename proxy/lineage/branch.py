"""Branches and sessions as an engine holds them in memory."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from proxy.lineage.keys import Path, normal
from proxy.lineage.records import AnswerKey, BranchRecord, BranchState, Mark
from proxy.transcript import HumanTurn, Key, Message

_LEAST_LINE = 20  # a system line up to this says nothing about the family


@dataclass(slots=True, eq=False)
class Session:
    """Branches that belong together."""

    id: str
    branches: list[Branch] = field(default_factory=list)


class System(msgspec.Struct, frozen=True):
    """A system text, as evidence."""

    text: str
    lines: frozenset[str]

    @classmethod
    def of(cls, text: str) -> System:
        """Reads a system text."""
        lines = (normal(line) for line in text.split("\n"))
        return cls(text, frozenset(line for line in lines if len(line) > _LEAST_LINE))

    def akin(self, other: System) -> bool:
        """Whether both come from one prompt: at least half of the larger one's lines are shared."""
        if self is other or self.text == other.text:
            return True
        most = max(len(self.lines), len(other.lines))
        # The larger one counts, so that a sub-agent's short prompt that quotes a part isn't the same.
        return bool(most) and len(self.lines & other.lines) * 2 >= most


class Proof(msgspec.Struct):
    """How far a path was searched for our own output, and from which key on it is proven."""

    seen: int = 0
    text: bool = False
    calls: int = 0
    summary: bool = False
    at: int = 0  # shortest proven prefix, 0 = none yet

    def copy(self) -> Proof:
        """Gives a proof that can go on by itself."""
        return Proof(self.seen, self.text, self.calls, self.summary, self.at)


@dataclass(slots=True, eq=False)
class Branch:
    """One path of a session in one epoch."""

    record: BranchRecord
    session: Session
    system: System
    keys: tuple[Key, ...] = ()  # newest path, answer included
    chain: tuple[bytes, ...] = ()
    path: Path | None = None  # of the newest request
    humans: tuple[HumanTurn, ...] = ()  # of the newest request
    left: tuple[HumanTurn, ...] = ()  # the base, less what was said again
    numbers: tuple[int, ...] = ()  # turn number of each key in `keys`
    highest: int = 0  # highest turn number given
    spoken: tuple[Key, ...] = ()  # keys of the newest request, summaries named as such
    summary_at: tuple[int, ...] = ()  # indexes of summaries in `spoken`
    requested: int = 0
    answered: bool = False
    pending: bool = False
    emitted: set[bytes] = field(default_factory=set)
    summaries: set[bytes] = field(default_factory=set)
    strong: set[str] = field(default_factory=set)
    prompts: set[bytes] = field(default_factory=set)
    same: dict[bytes, bytes] = field(default_factory=dict)
    answer: tuple[AnswerKey, ...] = ()
    nodes: set[bytes] = field(default_factory=set)
    proof: Proof = field(default_factory=Proof)
    settled: Proof = field(default_factory=Proof)  # the proof before the newest answer, to go on from when that fell
    used: int = 0  # tick of the last use
    alive: bool = True

    @property
    def id(self) -> str:
        """The branch's id."""
        return self.record.id

    @property
    def base(self) -> tuple[HumanTurn, ...]:
        """Human words cut off before this branch."""
        return self.record.base

    @property
    def sub(self) -> bool:
        """Whether it is a sub-agent's: nothing in it is human."""
        return self.record.kind == "sub"

    @property
    def base_keys(self) -> frozenset[bytes]:
        """What the base says, for comparison."""
        return frozenset(turn.key for turn in self.base)

    def shared(self, chain: Sequence[bytes]) -> int:
        """Gives how many keys the newest path has in common with this chain."""
        most = min(len(self.chain), len(chain))
        if most and self.chain[most - 1] == chain[most - 1]:
            return most
        # Equal nodes prove equal prefixes, so the first difference can be searched by halves.
        return bisect_left(range(most), 1, key=lambda place: int(self.chain[place] != chain[place]))

    def visible(self, upto: int | None = None) -> tuple[HumanTurn, ...]:
        """Gives base and human turns up to that key of the newest path."""
        if upto is None or upto >= self.requested:
            return later(self.base, self.humans)
        here = {key.hash for key in self.keys[:upto] if key.kind == "u"}
        return later(self.base, [turn for turn in self.humans if turn.key in here])

    def state(self) -> BranchState:
        """Gives what a store keeps of where it stands."""
        return BranchState(self.id, self.requested, self.answered, self.pending, self.answer, self.used)

    def marks(self) -> tuple[Mark, ...]:
        """Gives all that it must remember: written in whole when a branch begins with its parent's knowledge."""
        emitted = [Mark("emitted", value) for value in sorted(self.emitted)]
        return (*emitted, *(Mark("summary", value) for value in sorted(self.summaries)))


def union(first: Sequence[HumanTurn], second: Sequence[HumanTurn]) -> tuple[HumanTurn, ...]:
    """Gives both, each turn once, in order."""
    seen = {turn.key for turn in first}
    found = list(first)
    for turn in second:
        if turn.key not in seen:
            seen.add(turn.key)
            found.append(turn)
    return tuple(found)


def later(base: Sequence[HumanTurn], said: Sequence[HumanTurn]) -> tuple[HumanTurn, ...]:
    """Gives base and what was said since; a turn that was said again stands where it was said last."""
    again = {turn.key for turn in said}
    return union([turn for turn in base if turn.key not in again], said)


def without(turns: Sequence[HumanTurn], keys: Sequence[Key]) -> tuple[HumanTurn, ...]:
    """Gives the turns whose words don't stand in these keys."""
    here = {key.hash for key in keys if key.kind == "u"} if turns else ()
    return tuple(turn for turn in turns if turn.key not in here) if here else tuple(turns)


def numbered(
    keys: Sequence[Key], known: Sequence[int], highest: int, kept: Mapping[bytes, int] | None = None
) -> tuple[int, ...]:
    """Gives the turn number of each key.

    `known` are the numbers of the first keys, `highest` the highest given so far. Human and assistant texts count,
    those of one message once; a text that is in `kept` keeps its number, unless it is lower than the one before.
    """
    numbers = list(known)
    last = 0
    place_before = keys[len(numbers) - 1].message if numbers and keys[len(numbers) - 1].kind in "ua" else -1
    for key in keys[len(numbers) :]:
        if key.kind not in "ua":
            numbers.append(numbers[-1] if numbers else 0)
            continue
        old = kept.get(key.hash, 0) if kept else 0
        if old >= max(last, 1):
            last = old
            numbers.append(old)
        elif key.message == place_before and numbers:
            numbers.append(numbers[-1])
        else:
            highest = last = highest + 1
            numbers.append(highest)
        place_before = key.message
    return tuple(numbers)


def turns_of(
    keys: Sequence[Key], numbers: Sequence[int], messages: Sequence[Message], start: int = 0
) -> tuple[HumanTurn, ...]:
    """Gives the human turns among the keys from `start` on."""
    asked = next((key.closing for key in reversed(keys[:start]) if key.kind == "a"), "")
    turns = []
    for key, number in zip(keys[start:], numbers[start:], strict=False):
        if key.kind == "a":
            asked = key.closing
        elif key.kind == "u" and key.human is not None:
            turns.append(_turn(key, number, messages[key.message], asked))
    return tuple(turns)


def _turn(key: Key, number: int, message: Message, asked: str) -> HumanTurn:
    human = key.human
    words, via = (human.text, human.via) if human is not None else ("", "")
    images = tuple(f"{message.digest}:{place}" for place, part in enumerate(message.parts) if part.kind == "image")
    return HumanTurn(key.hash, words, number, message.digest, via, asked, images)
