"""One request on its way, and how it ended."""

from __future__ import annotations

import msgspec

from proxy.compaction.budget import Budget
from proxy.compaction.draft import Policy
from proxy.compaction.plan import Plan
from proxy.compaction.summary import Summary
from proxy.exchange import Call
from proxy.lineage.records import Changes
from proxy.pipeline.case import Case, Quiet
from proxy.transcript import Transcript


class Passage(msgspec.Struct):
    """One request on its way: what was decided, and the body that goes out now. It belongs to one task alone."""

    call: Call
    receipt: str
    body: bytes
    transcript: Transcript | None = None  # None for a body that can't be read
    quiet: Quiet | None = None  # what it goes on from, where it needs nothing: then `case` is made on the way
    case: Case | None = None
    plan: Plan | None = None
    budget: Budget | None = None
    policy: Policy | None = None
    summary: Summary | None = None  # a model-written one that this request used
    flags: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    retried: bool = False
    suspects: frozenset[str] = frozenset()  # insertions left out because the upstream refused a body with them
    heard: Changes | None = None  # what lineage made of the answer, where that was told before the receipt
    weight: int = 0  # tokens of the client's body, counted after the answer because its guess was in doubt
    held: tuple[str, ...] = ()  # ids of insertions in the history that the upstream holds and the client goes on from

    @property
    def rewritten(self) -> bool:
        """Whether other bytes than the client's go out."""
        return self.body is not self.call.body

    @property
    def planned(self) -> tuple[str, ...]:
        """The ids of the insertions that the plan wants to stand."""
        return tuple(one.id for one in self.plan.insertions) if self.plan is not None else ()

    @property
    def held_already(self) -> bool:
        """Whether the upstream holds just what the plan wants: then the client's own bytes suffice."""
        return bool(self.held) and self.planned == self.held

    @property
    def effective(self) -> bool:
        """Whether the model sees what the plan wants."""
        return self.rewritten or self.held_already

    @property
    def estimate(self) -> int:
        """Tokens of the body that the model sees, by our own count or guess; 0 without a plan."""
        if self.plan is None:
            return 0
        seen = self.plan.estimate_out if self.effective else self.plan.estimate_in
        return seen + self.weight - self.plan.estimate_in if self.weight else seen

    @property
    def standing(self) -> tuple[str, ...]:
        """The ids of the insertions in what the model sees."""
        return self.planned if self.effective else self.held

    def flagged(self, flag: str, note: str = "") -> Passage:
        """Adds a flag, and why; gives the passage itself."""
        if flag not in self.flags:
            self.flags = (*self.flags, flag)
        if note:
            self.notes = (*self.notes, note)
        return self


class Outcome(msgspec.Struct, frozen=True):
    """How an exchange ended: status (0 = no answer was finished), and a copy of the answer's bytes."""

    status: int
    body: bytes = b""
    sse: bool = False
    partial: bool = False
