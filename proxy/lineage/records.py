"""What lineage asks a store to keep, so that a proxy that starts again decides the same."""

from __future__ import annotations

from typing import Literal

import msgspec

from proxy.transcript import HumanTurn, KeyKind

MarkKind = Literal["emitted", "summary", "same", "prompt", "client"]
BranchKind = Literal["main", "sub"]


class AnswerKey(msgspec.Struct, frozen=True, omit_defaults=True):
    """A turn key of the newest answer, which stands in no stored message yet."""

    kind: KeyKind
    hash: bytes
    strong: str = ""
    length: int = 0
    text: str = ""  # closing words of an assistant text, at most 400 characters


class BranchRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a branch is; written when it begins, and again in the rare case that one of these fields changes."""

    id: str
    session: str
    kind: BranchKind = "main"
    parent: str = ""  # branch id it continues, was cut out of, or works for
    relation: str = "new"  # how it began
    epoch: int = 0  # how many times history was cut away before it
    dialect: str = ""
    product: str = ""  # name of the client product, "" when hidden
    profile: str = ""  # profile name that read it
    client: str = ""  # the client's own session id
    agent: str = ""  # the client's id of a sub-agent
    tools: tuple[str, ...] = ()
    base: tuple[HumanTurn, ...] = ()  # human words cut off before this branch
    numbers: tuple[int, ...] = ()  # turn numbers of its first keys; () = counted from 1
    offset: int = 0  # highest turn number before the keys behind `numbers`
    line: str = ""  # id of the branch that it continues through compactions: what people see as one branch
    system: str = ""  # system text outside the list of messages


class BranchState(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a branch stands; small, written with each request and each answer."""

    id: str
    requested: int = 0  # keys of the newest request
    answered: bool = False
    pending: bool = False  # a summary was answered and hasn't come back yet
    answer: tuple[AnswerKey, ...] = ()  # keys of the newest answer
    used: int = 0  # engine's tick of the newest request, so that the newest branch stays the newest


class Mark(msgspec.Struct, frozen=True):
    """A hash that a branch must remember.

    Our own output, a summary's key, a turn that was sent with other words, the words of a task given to a sub-agent, a
    session id of the client.
    """

    kind: MarkKind
    hash: bytes
    other: bytes = b""  # "same": the key that the turn was first known under


class Snapshot(msgspec.Struct, frozen=True):
    """The human words that one branch had when a summary was asked for."""

    branch: str
    turns: tuple[HumanTurn, ...]


class EmissionRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """A text that passed through us as an answer, by the hashes of its lines."""

    id: str
    branches: tuple[str, ...]  # whose it can be: one, or all candidates of a tie
    lines: tuple[tuple[bytes, int], ...]  # hash and length of each line
    whole: bytes = b""  # hash of the whole text
    total: int = 0  # characters of all lines
    summary: bool = False
    snapshots: tuple[Snapshot, ...] = ()


class Hint(msgspec.Struct, frozen=True):
    """Says that the branch may matter to a request in which this hash occurs."""

    hash: bytes
    branch: str


class Changes(msgspec.Struct, frozen=True):
    """All that a store must write after one decision; only what is new."""

    branch: BranchRecord | None = None
    state: BranchState | None = None
    states: tuple[BranchState, ...] = ()  # of other branches that changed with it
    marks: tuple[Mark, ...] = ()  # of `state.id`
    hints: tuple[Hint, ...] = ()
    emission: EmissionRecord | None = None


class StoredBranch(msgspec.Struct, frozen=True):
    """All that a store knows about one branch, besides the messages of its newest path."""

    record: BranchRecord
    state: BranchState
    marks: tuple[Mark, ...] = ()
    emissions: tuple[EmissionRecord, ...] = ()
