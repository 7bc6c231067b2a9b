"""Facts: what a person said that binds, with its source, as it is kept for people to read afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec


class Stated(Protocol):
    """What a fact needs of a pin."""

    # ruff: noqa: D102 — the fields of a pin, described there
    @property
    def id(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def turn(self) -> int: ...
    @property
    def message(self) -> str: ...
    @property
    def rule(self) -> str: ...
    @property
    def scope(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def span(self) -> tuple[int, int] | None: ...
    @property
    def superseded_by(self) -> str: ...
    @property
    def fallen(self) -> str: ...
    @property
    def asked(self) -> str: ...
    @property
    def via(self) -> str: ...


class Stand(Protocol):
    """What facts need of a ledger: its pins in the order in which they were said."""

    @property
    def pins(self) -> Sequence[Stated]: ...


class Source(msgspec.Struct, frozen=True):
    """Where words were said: the session, and what the request told about itself."""

    session: str
    branch: str
    client: str = ""
    model: str = ""
    project: str = ""
    cwd: str = ""
    git_branch: str = ""  # where the client tells it
    git_commit: str = ""


class Fact(msgspec.Struct, frozen=True):
    """One binding statement of the user and what became of it."""

    pin: str
    kind: str
    status: str
    scope: str
    text: str
    quote: str  # the words as they were said; equal to the text unless a person reworded it
    turn: int
    rule: str
    project: str
    session: str
    branch: str
    observed_at: str
    source: dict[str, str]  # session, branch, message digest, client, model, cwd, git_branch, git_commit, via, url, …
    span: tuple[int, int] | None = None
    superseded_by: str = ""  # pin id here; a fact id once stored
    supersedes: tuple[str, ...] = ()  # pin ids here; fact ids once stored
    fallen: str = ""  # the part that no longer holds
    asked: str = ""  # the question that the words answer
    who: str = "user"
    evidence: str = "user"
    id: str = ""  # ULID, given when it is first stored
    title: str = ""  # what follows is only ever written by people
    reason: str = ""
    rejected: tuple[str, ...] = ()  # what was turned down
    consequence: str = ""
    revisit: str = ""  # when it should be looked at again
    promoted: str = ""  # since when it is knowledge of the project, "" while it is a candidate
    edited: tuple[str, ...] = ()  # fields that a person changed: what the session says later leaves them alone


class FactChange(msgspec.Struct, frozen=True):
    """A new state of a fact: `new` when the pin wasn't there before, else what it became."""

    what: str  # new, superseded, closed, retracted, expired, active, narrowed
    at: str
    fact: Fact


class Known(msgspec.Struct, frozen=True):
    """A promoted fact, as a new session is told it."""

    id: str
    kind: str
    text: str
    since: str  # date on which it was said


def changes(old: Stand, new: Stand, source: Source, at: str) -> tuple[FactChange, ...]:
    """Gives what changed between two ledgers, one change for each pin that is new or stands differently."""
    before = {pin.id: pin for pin in old.pins}
    replaced: dict[str, list[str]] = {}
    for pin in new.pins:
        if pin.superseded_by:
            replaced.setdefault(pin.superseded_by, []).append(pin.id)
    found = []
    for pin in new.pins:
        was = before.get(pin.id)
        if was is not None and _state(was) == _state(pin):
            continue
        fact = _fact(pin, tuple(replaced.get(pin.id, ())), source, at)
        found.append(FactChange(_what(was, pin), at, fact))
    return tuple(found)


def _state(pin: Stated) -> tuple[str, str, str]:
    return str(pin.status), pin.superseded_by, pin.fallen


def _what(was: Stated | None, pin: Stated) -> str:
    if was is None:
        return "new"
    if str(was.status) == str(pin.status):
        return "narrowed"
    return str(pin.status)


def _fact(pin: Stated, supersedes: tuple[str, ...], source: Source, at: str) -> Fact:
    where = {"session": source.session, "branch": source.branch, "message": pin.message}
    told = {
        "client": source.client,
        "model": source.model,
        "cwd": source.cwd,
        "git_branch": source.git_branch,
        "git_commit": source.git_commit,
        "via": pin.via,
    }
    return Fact(
        pin=pin.id,
        kind=str(pin.kind),
        status=str(pin.status),
        scope=str(pin.scope),
        text=pin.text,
        quote=pin.text,
        turn=pin.turn,
        rule=pin.rule,
        project=source.project,
        session=source.session,
        branch=source.branch,
        observed_at=at,
        source=where | {name: value for name, value in told.items() if value},
        span=pin.span,
        superseded_by=pin.superseded_by,
        supersedes=supersedes,
        fallen=pin.fallen,
        asked=pin.asked,
        evidence="model" if pin.rule == "classifier" else "user",  # the words are the user's, that they bind isn't
    )
