"""What the pin rules decide about a human turn, and what stands in the ledger afterwards."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

import msgspec

Kind = Literal["goal", "correction", "constraint", "preference", "decision", "commitment", "fact"]
Scope = Literal["once", "session", "project"]


class Status(StrEnum):
    """Where a pin stands in its life."""

    ACTIVE = "active"
    CLOSED = "closed"
    SUPERSEDED = "superseded"
    RETRACTED = "retracted"
    EXPIRED = "expired"


class Verdict(msgspec.Struct, frozen=True):
    """What the rules say about one human turn; `kind` None means history: said, but binding nothing."""

    kind: Kind | None
    rule: str  # name of the rule that decided, or of the structural reason
    scope: Scope = "session"
    labels: tuple[str, ...] = ()  # all labels, the deciding one first (goal, goal_change, correction, approval, …)
    span: tuple[int, int] | None = None  # characters of the turn that bind; None = the whole turn


class Pin(msgspec.Struct, frozen=True):
    """Words of the user that bind, verbatim, with their source and status."""

    id: str  # "p" and 11 hex digits: hash over turn key, span and occurrence; the same on every replay
    kind: Kind
    text: str  # verbatim
    key: bytes  # turn key of the human turn it comes from
    turn: int  # turn number in the session
    message: str  # digest of the message it stood in, "" when a person added it by hand
    rule: str
    scope: Scope = "session"
    status: Status = Status.ACTIVE
    span: tuple[int, int] | None = None
    superseded_by: str = ""  # id of the pin that replaced it, in whole or in part
    fallen: str = ""  # the part of the text that no longer holds (empty: nothing, or all when not active)
    asked: str = ""  # the question that an option letter answers
    via: str = ""  # the tool's name when the words stood in a tool result
    by_hand: bool = False  # a person added or ended it through the command line or the API

    @property
    def active(self) -> bool:
        """Whether it must stand in every forwarded main-line request."""
        return self.status is Status.ACTIVE


class Entry(msgspec.Struct, frozen=True):
    """A human turn that binds nothing: it goes to the work log as history."""

    key: bytes
    text: str
    turn: int
    message: str
    label: str = ""  # approval, question, complaint, chatter, step
    via: str = ""


class Ledger(msgspec.Struct, frozen=True):
    """All that the human turns of a branch amount to, in the order in which they were said."""

    pins: tuple[Pin, ...] = ()
    history: tuple[Entry, ...] = ()

    @property
    def active(self) -> tuple[Pin, ...]:
        """The pins that bind now, oldest first."""
        return tuple(pin for pin in self.pins if pin.active)

    @property
    def goal(self) -> Pin | None:
        """The newest active goal."""
        return next((pin for pin in reversed(self.pins) if pin.kind == "goal" and pin.active), None)
