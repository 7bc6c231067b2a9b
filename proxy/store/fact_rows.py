"""Writes facts: the newest state, the event that led to it, and the words by which it is found."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from typing import NamedTuple

import msgspec

from proxy.facts import Fact, FactChange
from proxy.store.fact_search import indexed
from proxy.store.ids import new_ulid
from proxy.store.rows import now

_encode = msgspec.json.Encoder().encode
_BY_PEOPLE = ("title", "reason", "rejected", "consequence", "revisit", "promoted", "edited")
BY_HAND = "*"  # the namespace of facts that were said in no session


class Event(NamedTuple):
    """One event as the views need it."""

    seq: int
    project: str
    line: str  # of the JSONL view


class FactRows:
    """Writes facts through one connection; its caller begins and commits the transaction.

    `sealed` masks JSON text and keeps the values that it found.
    """

    def __init__(self, db: sqlite3.Connection, sealed: Callable[[str, str], str]) -> None:
        self._db = db
        self._sealed = sealed

    def take(self, tenant: str, namespace: str, changes: Iterable[FactChange]) -> list[Event]:
        """Writes what a session said; a state that is known already makes no event."""
        changes = list(changes)
        ids = self._ids({(c.fact.session, pin) for c in changes for pin in _pins_in(c.fact)})
        for change in changes:
            ids.setdefault((change.fact.session, change.fact.pin), new_ulid())
        events = []
        for change in changes:
            session = change.fact.session
            fact = msgspec.structs.replace(
                change.fact,
                id=ids[session, change.fact.pin],
                superseded_by=ids.get((session, change.fact.superseded_by), ""),
                supersedes=tuple(ids[session, pin] for pin in change.fact.supersedes if (session, pin) in ids),
            )
            masked = msgspec.json.decode(self._sealed(tenant, _encode(fact).decode()), type=Fact)
            events += self._changed(tenant, namespace, change, masked)
        return events

    def put(self, tenant: str, namespace: str, fact: Fact, what: str, at: str) -> Event:
        """Writes a fact's new state, its texts masked already, and tells of it as an event."""
        words = self._indexed(fact)
        record = _encode(fact).decode()
        row = (fact.id, tenant, fact.project, fact.session, fact.branch, fact.pin, fact.kind, fact.status, fact.scope)
        self._db.execute(
            "INSERT OR REPLACE INTO facts"
            " (id, tenant, project, session, branch, pin, kind, status, scope, record, namespace,"
            " words) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (*row, record, namespace, words),
        )
        added = self._db.execute(
            "INSERT INTO fact_events (fact, at, what, record) VALUES (?, ?, ?, ?)", (fact.id, at, what, record)
        )
        seq = int(added.lastrowid or 0)
        self._db.execute("INSERT INTO unlisted VALUES (?, ?)", (seq, at))
        return Event(seq, fact.project, event_line(seq, at, what, record))

    def known(self, identity: str) -> Fact | None:
        """Gives a stored fact, masked."""
        row = self._db.execute("SELECT record FROM facts WHERE id = ?", (identity,)).fetchone()
        return msgspec.json.decode(row[0], type=Fact) if row else None

    def _ids(self, wanted: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
        found = {}
        for session, pin in wanted:
            row = self._db.execute("SELECT id FROM facts WHERE session = ? AND pin = ?", (session, pin)).fetchone()
            if row:
                found[session, pin] = row[0]
        return found

    def _changed(self, tenant: str, namespace: str, change: FactChange, fact: Fact) -> list[Event]:
        """Writes a fact's new state, if it is one: a proxy that starts again tells the old ones once more."""
        was = self.known(fact.id)
        if was is not None:
            fact = _with_what_people_changed(fact, was)
            if _standing(was) == _standing(fact):
                return []
        what = change.what if was is None or change.what != "new" else fact.status
        return [self.put(tenant, namespace, fact, what, change.at or now())]

    def _indexed(self, fact: Fact) -> int:
        """Makes a fact findable by its words, and gives the row of the index."""
        old = self._db.execute("SELECT record, words FROM facts WHERE id = ?", (fact.id,)).fetchone()
        if old and indexed(msgspec.json.decode(old[0], type=Fact)) == indexed(fact):
            return int(old[1])
        if old:
            self._db.execute("DELETE FROM facts_text WHERE rowid = ?", (old[1],))
        added = self._db.execute("INSERT INTO facts_text (text, fact) VALUES (?, ?)", (indexed(fact), fact.id))
        return int(added.lastrowid or 0)


def event_line(seq: int, at: str, what: str, record: str) -> str:
    """Gives one line of the JSONL view: the event's number, time and name, and the fact as it stood then."""
    head = _encode({"event": seq, "at": at, "what": what}).decode()
    return f"{head[:-1]},{record[1:]}\n"


def _with_what_people_changed(fact: Fact, was: Fact) -> Fact:
    kept = {name: getattr(was, name) for name in (*was.edited, *_BY_PEOPLE)}
    known = {"observed_at": was.observed_at, "branch": was.branch, "source": was.source}
    known["supersedes"] = fact.supersedes or was.supersedes
    return msgspec.structs.replace(fact, **(known | kept))


def _pins_in(fact: Fact) -> tuple[str, ...]:
    return (fact.pin, *fact.supersedes, fact.superseded_by) if fact.superseded_by else (fact.pin, *fact.supersedes)


def _standing(fact: Fact) -> tuple[str, str, str, str]:
    return fact.kind, fact.status, fact.superseded_by, fact.fallen
