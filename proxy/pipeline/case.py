"""One request with all that is known about it, and what its branch carries along."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import msgspec

from proxy.clients import Profile
from proxy.compaction.draft import Memory
from proxy.compaction.plan import Plan
from proxy.compaction.view import View
from proxy.exchange import Call
from proxy.facts import NOWHERE, Place
from proxy.lineage import Link
from proxy.pins.lifecycle import Edit
from proxy.pins.model import Ledger
from proxy.pipeline.weighing import Weight
from proxy.transcript import HumanTurn, Message, Transcript


class Told(msgspec.Struct, frozen=True):
    """A body whose tokens were only guessed, the ids of the insertions in it, and what the upstream counted."""

    messages: tuple[Message, ...]
    standing: tuple[str, ...]
    tokens: int


@dataclass(slots=True)
class BranchState:
    """What one branch carries from request to request."""

    memory: Memory = field(default_factory=Memory)
    turns: tuple[HumanTurn, ...] = ()
    ledger: Ledger = field(default_factory=Ledger)  # of `turns`, before what people changed by hand
    edits: tuple[Edit, ...] = ()
    edit_seq: int = 0
    edit_mark: bytes = b""  # the store's mark when the edits were read
    tokens: tuple[int, ...] = ()  # of each message of the newest request
    counted: int = 0  # how many of them, from the first on, are counted; the others are guessed
    stored: tuple[Message, ...] = ()  # the path as the store has it
    good: tuple[str, ...] = ()  # ids of the insertions in the newest body that the upstream took
    facts: Ledger = field(default_factory=Ledger)  # the ledger as the store has it
    weight: Weight = field(default_factory=Weight)  # of the newest answered body
    told: Told | None = None  # of the newest answered body, where that was guessed
    condensing: bool = False  # the provider was asked for a block of its own
    condense_failures: int = 0
    summarizing: bool = False  # a summary for the next cut is being written

    def at_most(self, messages: tuple[Message, ...], counted: int) -> int:
        """Gives the tokens of the first `counted` messages, and one for each byte of the others: never too few."""
        return sum(self.tokens[:counted]) + sum([len(message.raw) for message in messages[counted:]])


class Scope(msgspec.Struct, frozen=True):
    """Who is asking, and under which name: nothing crosses from one scope to another."""

    tenant: str
    namespace: str


class Track(msgspec.Struct, frozen=True):
    """The branch that a request goes on in: what it carries, and the request as the planner sees it."""

    state: BranchState
    view: View


class Case(msgspec.Struct, frozen=True):
    """One request with all that is known about it."""

    call: Call
    transcript: Transcript
    profile: Profile
    scope: Scope
    link: Link
    receipt: str
    project: str
    track: Track | None = None  # None for a side call that belongs to no branch's path
    unverified: tuple[str, ...] = ()  # quotes in the client's summary that no human turn holds
    new_from: int = 0  # index of the first message that the branch's stored path doesn't have
    recorded: bool = False  # whether its new turns and lineage's rows are on their way to the store
    exact: bool = False  # whether all its tokens are counted; guesses are enough far below the limit
    place: Place = NOWHERE  # where the client works
    stored: asyncio.Future[None] | None = None  # done when the new turns are committed

    @property
    def branch(self) -> str:
        """The branch id, "" for a side call that belongs to none."""
        return self.link.branch or ""


class Quiet(msgspec.Struct, frozen=True):
    """A request that needed nothing, and what was planned for it: what its successors are held against."""

    case: Case
    track: Track
    plan: Plan
    headers: tuple[tuple[str, str], ...]

    @property
    def messages(self) -> tuple[Message, ...]:
        """Its messages."""
        return self.case.transcript.messages
