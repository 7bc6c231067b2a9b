"""Forgetting by age and size: old sessions, and facts that the policy doesn't keep for ever."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from types import MappingProxyType

import msgspec

from proxy.store.erasure import drop_facts, drop_secrets, drop_session
from proxy.store.fact_edits import folder_of
from proxy.store.schema import transaction
from proxy.store.views import rewrite

_NEVER: Mapping[str, int] = MappingProxyType({})


class FactPolicy(msgspec.Struct, frozen=True):
    """How long facts are kept: days since their last change by `kind/status`, `status` or `kind`; others for ever.

    When facts and history are above `max_bytes`, the longest ended go first. What was promoted, and what is active
    without a number of days, never goes by itself.
    """

    days: Mapping[str, int] = msgspec.field(default_factory=lambda: _NEVER)
    max_bytes: int = 0  # 0 = no bound

    def limit(self, kind: str, status: str) -> int | None:
        """Gives the days that such a fact is kept, None for ever; the most exact name counts."""
        for name in (f"{kind}/{status}", status, kind):
            if name in self.days:
                return self.days[name]
        return None


class Purged(msgspec.Struct, frozen=True):
    """What a purge took away."""

    sessions: int
    messages: int
    secrets: int
    facts: int = 0


def purge(
    db: sqlite3.Connection,
    *,
    days: float,
    max_bytes: int,
    facts: FactPolicy | None = None,
    now: datetime | None = None,
) -> Purged:
    """Deletes sessions unused for `days`, then the longest unused while messages and records are above `max_bytes`.

    What goes: log, archive, receipts, lineage, facts as their policy says, and the secret values that nothing names any
    more. Each session goes in a transaction of its own, so that other writers never wait long.
    """
    now = now or datetime.now(UTC)
    before = (now - timedelta(days=days)).isoformat()
    sessions = messages = 0
    for (session,) in db.execute("SELECT id FROM sessions WHERE updated_at < ?", (before,)).fetchall():
        messages += _forget(db, session)
        sessions += 1
    while _bytes_of(db) > max_bytes:
        oldest = db.execute("SELECT id FROM sessions ORDER BY updated_at, rowid LIMIT 1").fetchone()
        if oldest is None:
            break
        messages += _forget(db, oldest[0])
        sessions += 1
    gone = _purge_facts(db, facts, now) if facts else 0
    return Purged(sessions, messages, _drop_secrets(db) if sessions or gone else 0, gone)


def _bytes_of(db: sqlite3.Connection) -> int:
    sizes = (
        "SELECT coalesce(sum(length(body)), 0) FROM messages",
        "SELECT coalesce(sum(length(record)), 0) FROM receipts",
        "SELECT coalesce(sum(length(body)), 0) FROM frames",
    )
    return sum(int(db.execute(size).fetchone()[0]) for size in sizes)


def _forget(db: sqlite3.Connection, session: str) -> int:
    with transaction(db):
        return drop_session(db, session)


def _drop_secrets(db: sqlite3.Connection) -> int:
    with transaction(db):
        return drop_secrets(db)


def _purge_facts(db: sqlite3.Connection, policy: FactPolicy, now: datetime) -> int:
    rows = db.execute(
        "SELECT f.id, kind, status, max(e.at), sum(length(e.record)) + length(f.record) FROM facts f"
        " JOIN fact_events e ON e.fact = f.id WHERE coalesce(json_extract(f.record, '$.promoted'), '') = ''"
        " GROUP BY f.id ORDER BY max(e.at)"
    ).fetchall()
    old = [name for name, kind, status, at, _ in rows if _too_old(at, policy.limit(kind, status), now)]
    ended = [(name, size) for name, _, status, _, size in rows if status != "active" and name not in set(old)]
    over = _fact_bytes(db) - sum(size for name, *_, size in rows if name in set(old)) - policy.max_bytes
    for name, size in ended if policy.max_bytes else ():
        if over <= 0:
            break
        old.append(name)
        over -= size
    if not old:
        return 0
    with transaction(db):
        projects = drop_facts(db, old)
    rewrite(folder_of(db), db, projects)
    return len(old)


def _fact_bytes(db: sqlite3.Connection) -> int:
    sizes = ("SELECT sum(length(record)) FROM facts", "SELECT sum(length(record)) FROM fact_events")
    return sum(int(db.execute(size).fetchone()[0] or 0) for size in sizes)


def _too_old(changed_at: str, days: int | None, now: datetime) -> bool:
    return days is not None and changed_at < (now - timedelta(days=days)).isoformat()
