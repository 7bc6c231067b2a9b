"""Forgetting: sessions that are old, or the oldest ones when the store is too big. Facts stay."""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

_OF_BRANCH = (
    "paths", "marks", "hints", "emission_branches", "insertions", "quarantine", "answers", "replies", "reply_items",
)  # fmt: skip
_OF_SESSION = ("receipts", "tool_calls", "pin_edits", "frames", "branches")
_TOKEN = re.compile(r"\[secret:[a-z_]{1,24}:([0-9a-f]{16})\]")
_TEXTS = (
    ("messages", "body"),
    ("branches", "record"),
    ("emissions", "record"),
    ("insertions", "record"),
    ("receipts", "record"),
    ("frames", "body"),
    ("answers", "record"),
    ("facts", "record"),
    ("fact_events", "record"),
    ("pin_edits", "text"),
)


@dataclass(frozen=True, slots=True)
class Purged:
    """What a purge took away."""

    sessions: int
    messages: int
    secrets: int


def purge(db: sqlite3.Connection, *, days: float, max_bytes: int, now: datetime | None = None) -> Purged:
    """Deletes sessions unused for `days`, then the longest unused while messages and records are above `max_bytes`.

    What goes: log, archive, receipts, lineage, and the secret values that nothing names any more.
    """
    before = ((now or datetime.now(UTC)) - timedelta(days=days)).isoformat()
    old = [row[0] for row in db.execute("SELECT id FROM sessions WHERE updated_at < ?", (before,))]
    sessions = messages = 0
    for session in old:
        messages += _forget(db, session)
        sessions += 1
    while _bytes_of(db) > max_bytes:
        oldest = db.execute("SELECT id FROM sessions ORDER BY updated_at, rowid LIMIT 1").fetchone()
        if oldest is None:
            break
        messages += _forget(db, oldest[0])
        sessions += 1
    return Purged(sessions, messages, _drop_secrets(db) if sessions else 0)


def _bytes_of(db: sqlite3.Connection) -> int:
    sizes = (
        "SELECT coalesce(sum(length(body)), 0) FROM messages",
        "SELECT coalesce(sum(length(record)), 0) FROM receipts",
        "SELECT coalesce(sum(length(body)), 0) FROM frames",
    )
    return sum(int(db.execute(size).fetchone()[0]) for size in sizes)


def _forget(db: sqlite3.Connection, session: str) -> int:
    """Deletes one session in a transaction of its own, so that other writers never wait long."""
    db.execute("BEGIN IMMEDIATE")
    try:
        for table in _OF_BRANCH:
            db.execute(f"DELETE FROM {table} WHERE branch IN (SELECT id FROM branches WHERE session = ?)", (session,))  # noqa: S608
        for table in _OF_SESSION:
            db.execute(f"DELETE FROM {table} WHERE session = ?", (session,))  # noqa: S608
        db.execute("DELETE FROM sessions WHERE id = ?", (session,))
        db.execute("DELETE FROM emissions WHERE id NOT IN (SELECT emission FROM emission_branches)")
        gone = db.execute(
            "DELETE FROM messages WHERE (tenant, digest) NOT IN"
            " (SELECT tenant, digest FROM paths JOIN branches ON id = branch"
            " UNION ALL SELECT tenant, digest FROM reply_items)"
        ).rowcount
        db.execute("COMMIT")
    except sqlite3.Error:
        db.execute("ROLLBACK")
        raise
    return gone


def _drop_secrets(db: sqlite3.Connection) -> int:
    """Deletes sealed values whose token stands in no text any more."""
    db.execute("BEGIN IMMEDIATE")
    try:
        named: set[str] = set()
        for table, column in _TEXTS:
            rows = db.execute(f"SELECT {column} FROM {table} WHERE {column} LIKE '%[secret:%'")  # noqa: S608
            named.update(token for (text,) in rows for token in _TOKEN.findall(text))
        dropped = [(token,) for (token,) in db.execute("SELECT DISTINCT token FROM secrets") if token not in named]
        db.executemany("DELETE FROM secrets WHERE token = ?", dropped)
        db.execute("COMMIT")
    except sqlite3.Error:
        db.execute("ROLLBACK")
        raise
    return len(dropped)
