"""Facts: what a person said that binds, with its source, as it is kept for people to read afterwards."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
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
    source: dict[str, str]  # session, branch, message digest, client, model, cwd, via
    span: tuple[int, int] | None = None
    superseded_by: str = ""  # pin id here; a fact id once stored
    supersedes: tuple[str, ...] = ()  # pin ids here; fact ids once stored
    fallen: str = ""  # the part that no longer holds
    asked: str = ""  # the question that the words answer
    who: str = "user"
    evidence: str = "user"
    id: str = ""  # ULID, given when it is first stored


@dataclass(frozen=True, slots=True)
class FactChange:
    """A new state of a fact: `new` when the pin wasn't there before, else what it became."""

    what: str  # new, superseded, closed, retracted, expired, active, narrowed
    at: str
    fact: Fact


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
    told = {"client": source.client, "model": source.model, "cwd": source.cwd, "via": pin.via}
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


_FOLDER = re.compile(
    r"(?:working (?:directory|folder)|\bcwd\"?)\s{0,4}(?:is|:|=)\s{0,4}[`\"']?"
    r"([/~][^\s`\"'<>,;]*|[A-Za-z]:\\[^\s`\"'<>,;]*)"
    r"|<cwd>\s*([^<\n]{1,400}?)\s*</cwd>",
    re.IGNORECASE,
)


@lru_cache(maxsize=64)
def folder_of(system_text: str) -> str:
    """Gives the working directory that a client names in its system text, "" when it names none."""
    found = _FOLDER.search(system_text[:200_000])
    if not found:
        return ""
    return (found[1] or found[2]).rstrip("/\\.") or "/"


def project_of(system_text: str, named: str = "") -> str:
    """Gives the project's name: what a header or the path says, else the working directory, else ""."""
    return named.strip() or folder_of(system_text)
