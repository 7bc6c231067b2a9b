"""A plan in the making, and what it is made from: the policy, the branch's memory, the tools."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
from msgspec.structs import replace

from proxy.compaction.budget import Budget, Mode
from proxy.compaction.insertion import Insertion
from proxy.compaction.invariants import Invariant
from proxy.compaction.presence import Presence, presence
from proxy.compaction.rewrite import Writer, size
from proxy.compaction.summary import Summary
from proxy.compaction.thinking import Condensed
from proxy.compaction.validity import of_dialect
from proxy.compaction.view import View
from proxy.facts import Known
from proxy.transcript import Message

_MARGIN = 0.25  # how far text of another kind can lie off the calibration (JSON rows against prose: a quarter)
_UNTOLD = 0.02  # how far a whole body can lie off it: what small bodies teach isn't exact for large ones


class Policy(msgspec.Struct, frozen=True):
    """What the settings and the request ask for; limits in the upstream's tokens."""

    mode: Mode
    budget: Budget
    target: float
    keep_recent: float
    history: str  # all, short, off
    pin_tokens: int
    pins_hard: bool  # a person set the pin limit
    strict: bool
    ratio: float = 1.0  # upstream's tokens for one of our estimate
    dialect: str = "chat"

    @property
    def invariants(self) -> tuple[Invariant, ...]:
        """What must hold in a forwarded body."""
        return of_dialect(self.dialect, strict=self.strict)


class Memory(msgspec.Struct, frozen=True):
    """What a branch carries from request to request."""

    insertions: tuple[Insertion, ...] = ()  # all that were ever made for it, oldest first
    refused: frozenset[str] = frozenset()  # ids that an upstream refused: never used again
    estimate: int = 0  # our estimate of the newest accepted body
    reported: int = 0  # the upstream's own count of it, 0 = not told
    stuck_at: int = 0  # number of keys when no cut could bring the body under the budget
    summary: Summary | None = None  # a model-written summary that waits for the next cut
    block: Condensed | None = None  # the provider's own block that waits for the next request
    recall: tuple[Known, ...] = ()  # what is known of the project, for the first request of a session
    recall_tokens: int = 0  # the most of it
    strict: bool = False  # the upstream refused an own message of ours: go into neighbouring ones


class Tools(msgspec.Struct, frozen=True):
    """What planning needs from outside: token counts and the dialect's writing."""

    count: Callable[[str], int]
    writer: Writer
    read: Callable[[bytes], Message]


class Draft(msgspec.Struct, frozen=True):
    """A plan in the making."""

    view: View
    policy: Policy
    memory: Memory
    tools: Tools
    branch: str
    insertions: tuple[Insertion, ...]
    fresh: tuple[Insertion, ...] = ()
    flags: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    limit: int = 0  # the most tokens that this body may have
    floor: int = 0  # tokens of the newest messages that a cut leaves untouched, at least
    forced: bool = False  # after an overflow: shrink as far as needed
    # What was worked out, by the ids of the insertions; shared by all forms of the draft.
    _seen: dict[tuple[str, ...], Presence] = {}
    _sizes: dict[tuple[str, ...], int] = {}

    def presence(self) -> Presence:
        """Which active pins stand in the body, worked out once for each set of insertions."""
        names = tuple(one.id for one in self.insertions)
        if names not in self._seen:
            self._seen[names] = presence(self.view, self.insertions)
        return self._seen[names]

    def estimate(self, insertions: Sequence[Insertion] | None = None) -> int:
        """Our estimate of the forwarded body with these insertions (the draft's own when none are given)."""
        chosen = self.insertions if insertions is None else insertions
        names = tuple(one.id for one in chosen)
        if names not in self._sizes:
            self._sizes[names] = size(chosen, self.view)
        return self._sizes[names]

    def predict(self, insertions: Sequence[Insertion] | None = None) -> int:
        """The upstream's count of that body: what it told of the newest one and the calibrated rest, or all of it."""
        estimate = self.estimate(insertions)
        memory, ratio = self.memory, self.policy.ratio
        grown = estimate - memory.estimate
        if memory.reported and not self.fresh and insertions is None and grown >= 0:
            return memory.reported + round(grown * max(ratio, 0.01))
        return round(estimate * ratio)

    def over(self) -> bool:
        """Whether the body may be above its limit: with a margin for what the upstream hasn't counted yet."""
        if not self.limit:
            return False
        predicted, memory = self.predict(), self.memory
        if memory.reported and not self.fresh:
            unsure = max(self.estimate() - memory.estimate, 0) * self.policy.ratio * _MARGIN
        else:
            unsure = predicted * _UNTOLD
        return predicted + round(unsure) > self.limit

    def with_insertion(self, one: Insertion, *, flags: Sequence[str] = ()) -> Draft:
        """The draft with one more insertion for those that it replaces; one that was refused isn't made again."""
        if one.id in self.memory.refused:
            return replace(self, flags=tuple(dict.fromkeys((*self.flags, "plan_quarantined"))))
        kept = tuple(old for old in self.insertions if old.id not in one.replaces)
        ordered = tuple(sorted((*kept, one), key=lambda item: item.end))
        new_flags = tuple(dict.fromkeys((*self.flags, *flags)))
        return replace(self, insertions=ordered, fresh=(*self.fresh, one), flags=new_flags)
