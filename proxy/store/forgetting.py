"""Forgetting on a person's order: what would go, taking it away everywhere, and looking into the raw files afterwards.

Sessions go whole, facts included. By a pattern or a person, facts that hold the words go whole; in log, archive and
receipts the words become `[forgotten]`, and a conversation whose own words changed so is never resumed.
"""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from proxy.redaction import Sealer
from proxy.store.erasure import (
    branches_of,
    drop_facts,
    drop_lineage,
    drop_orphans,
    drop_secrets,
    drop_session,
    tables,
)
from proxy.store.fact_edits import folder_of
from proxy.store.queries import tell
from proxy.store.redacting import FORGOTTEN, Redactor
from proxy.store.rows import now
from proxy.store.schema import FILE, transaction
from proxy.store.views import rewrite, sweep

_NO_TEXT = frozenset(
    {
        "paths",
        "marks",
        "hints",
        "emission_branches",
        "quarantine",
        "unlisted",
        "replies",
        "reply_items",
        "secrets",
        "forgotten",
    }
)
_FACTS = ("facts", "fact_events")
_NO_WORDS = frozenset(
    {
        "id", "tenant", "digest", "at", "branch", "session", "receipt", "role", "kind", "parent", "action", "pin",
        "call_id", "origin", "since", "created_at", "updated_at", "plan", "scope",
    }
)  # fmt: skip
_RESUMABLE = ("tool", "function", "system", "developer")  # roles whose words no lineage is made of
_GROWING = ("messages", "receipts", "answers", "tool_calls", "insertions", "emissions", "frames")
_CHECKPOINT_SECONDS = 30.0
_READ = 4 << 20  # bytes of a file that are looked at together
_OVERLAP = 4096

Key = tuple[Any, ...]  # what names a row: its rowid, or the primary key of a table without one


class Wish(msgspec.Struct, frozen=True):
    """What is to be forgotten: sessions with all that belongs to them, or words wherever they stand."""

    sessions: tuple[str, ...] = ()
    project: str | None = None
    pattern: re.Pattern[str] | None = None
    person: str = ""


class Found(msgspec.Struct, frozen=True):
    """What a wish means: whole sessions, whole facts, and rows by table in which words are taken out."""

    sessions: tuple[str, ...]
    facts: tuple[str, ...]
    messages: int  # of the sessions; those that other sessions share stay
    receipts: int
    redacted: dict[str, tuple[Key, ...]] = {}  # table → its rows
    until: dict[str, Key] = {}  # the newest row of tables that only grow

    @property
    def nothing(self) -> bool:
        """Whether nothing is stored that the wish means."""
        return not (self.sessions or self.facts or self.redacted)


def find(db: sqlite3.Connection, seal: Sealer, wish: Wish, known: Found | None = None) -> Found:
    """Gives what would go; changes nothing. With what is `known`, only newer rows of large tables are looked at."""
    after = known.until if known else {}
    until = {table: newest for table in _GROWING if table in tables(db) and (newest := _newest(db, table)) is not None}
    sessions = _sessions(db, wish)
    facts = [name for one in sessions for (name,) in db.execute("SELECT id FROM facts WHERE session = ?", (one,))]
    if wish.project is not None:
        facts += [name for (name,) in db.execute("SELECT id FROM facts WHERE project = ?", (wish.project,))]
    redacted: dict[str, tuple[Key, ...]] = {}
    if wish.pattern is not None:
        redactor = _redactor(db, seal, wish.pattern)
        facts += _facts_with(db, redactor, wish.person)
        for table in _texts(db):
            before = known.redacted.get(table, ()) if table in after and known else ()
            rows = (*before, *_rows_with(db, table, redactor, after.get(table)))
            redacted |= {table: rows} if rows else {}
    counts = [_counted(db, one) for one in sessions]
    messages, receipts = sum(one[0] for one in counts), sum(one[1] for one in counts)
    return Found(tuple(sessions), tuple(dict.fromkeys(facts)), messages, receipts, redacted, until)


def forget(db: sqlite3.Connection, seal: Sealer, wish: Wish, known: Found | None = None) -> Found:
    """Takes it away, in one transaction and then in the views, and gives what went; `scrub` then empties the pages.

    `known` is what was found before, so that writers needn't wait for the search.
    """
    folder = folder_of(db)
    known = known or find(db, seal, wish)
    with transaction(db):
        found = find(db, seal, wish, known)
        for session in found.sessions:
            _note(db, [session, *branches_of(db, session)], gone=True)
            drop_session(db, session)
        projects = drop_facts(db, found.facts)
        if wish.pattern is not None:
            _redact(db, _redactor(db, seal, wish.pattern), found)
        drop_orphans(db)
        drop_secrets(db)
        db.execute("INSERT INTO facts_text (facts_text) VALUES ('rebuild')")
    tell(db)
    rewrite(folder, db, projects)
    sweep(folder)
    return found


def scrub(db: sqlite3.Connection) -> bool:
    """Writes the database anew without its free pages, and empties the write-ahead log.

    False when another program was reading all the time: then the log may still hold old pages.
    """
    log = folder_of(db) / f"{FILE}-wal"
    until = time.monotonic() + _CHECKPOINT_SECONDS
    vacuumed = False
    while time.monotonic() < until:
        try:
            if not vacuumed:
                db.execute("VACUUM")
                vacuumed = True
            busy = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        except sqlite3.OperationalError:
            busy = 1
        if not busy and (not log.exists() or log.stat().st_size == 0):
            return True
        time.sleep(0.05)
    return False


def traces(folder: Path, pattern: re.Pattern[str]) -> list[str]:
    """Gives the files of the data folder whose name or raw bytes still hold the words."""
    files = [file for file in sorted(folder.rglob("*")) if file.is_file()]
    return [str(file) for file in files if pattern.search(file.name) or _holds(file, pattern)]


def _holds(file: Path, pattern: re.Pattern[str]) -> bool:
    with file.open("rb") as stream:
        before = b""
        while block := stream.read(_READ):
            text = before + block
            if pattern.search(text.decode("utf-8", "replace")):
                return True
            before = text[-_OVERLAP:]
    return False


def _sessions(db: sqlite3.Connection, wish: Wish) -> list[str]:
    if wish.project is None:
        return list(wish.sessions)
    return [name for (name,) in db.execute("SELECT id FROM sessions WHERE project = ?", (wish.project,))]


def _counted(db: sqlite3.Connection, session: str) -> tuple[int, int]:
    messages = db.execute(
        "SELECT count(DISTINCT digest) FROM paths JOIN branches ON id = branch WHERE session = ?", (session,)
    ).fetchone()[0]
    receipts = db.execute("SELECT count(*) FROM receipts WHERE session = ?", (session,)).fetchone()[0]
    return int(messages), int(receipts)


def _redactor(db: sqlite3.Connection, seal: Sealer, pattern: re.Pattern[str]) -> Redactor:
    def opened(token: str) -> str | None:
        row = db.execute("SELECT nonce, sealed FROM secrets WHERE token = ? LIMIT 1", (token,)).fetchone()
        return seal.opened(token, row[0], row[1]) if row else None

    return Redactor(pattern, opened)


def _texts(db: sqlite3.Connection) -> Iterator[str]:
    return (name for name in tables(db) if name not in _NO_TEXT and name not in _FACTS)


def _columns(db: sqlite3.Connection, table: str) -> list[str]:
    return [name for name in tables(db)[table] if name not in _NO_WORDS]


def _facts_with(db: sqlite3.Connection, redactor: Redactor, person: str) -> list[str]:
    rows = db.execute("SELECT fact, record FROM fact_events UNION ALL SELECT id, record FROM facts")
    return [name for name, record in rows if redactor.matches(record, "facts") or (person and _by(record, person))]


def _by(record: str, person: str) -> bool:
    return str(msgspec.json.decode(record).get("who", "")).casefold() == person.casefold()


def _newest(db: sqlite3.Connection, table: str) -> Key | None:
    (column,) = _key(db, table)
    newest = db.execute(f"SELECT max({column}) FROM {table}").fetchone()[0]  # noqa: S608
    return None if newest is None else (newest,)


def _rows_with(db: sqlite3.Connection, table: str, redactor: Redactor, after: Key | None) -> tuple[Key, ...]:
    columns, key = _columns(db, table), _key(db, table)
    if not columns:
        return ()
    newer = f" WHERE {key[0]} > ?" if after else ""
    rows = db.execute(f"SELECT {', '.join((*key, *columns))} FROM {table}{newer}", after or ())  # noqa: S608
    return tuple(
        row[: len(key)]
        for row in rows
        if any(isinstance(text, str) and redactor.matches(text, table) for text in row[len(key) :])
    )


def _key(db: sqlite3.Connection, table: str) -> tuple[str, ...]:
    """Gives the columns that name a row."""
    sql = db.execute("SELECT sql FROM sqlite_master WHERE name = ?", (table,)).fetchone()[0]
    if not re.search(r"WITHOUT\s+ROWID", sql, re.IGNORECASE):
        return ("rowid",)
    columns = db.execute(f"PRAGMA table_info({table})").fetchall()
    return tuple(name for _, name, *_, place in sorted(columns, key=lambda row: int(row[5])) if place)


def _redact(db: sqlite3.Connection, redactor: Redactor, found: Found) -> None:
    touched: dict[str, None] = {}  # what memory has to read anew
    ended: dict[str, None] = {}  # branches that are never resumed
    for table, rows in found.redacted.items():
        for name in rows:
            row = _redact_row(db, table, name, redactor)
            branches, ends = _concerned(db, table, row)
            (ended if ends else touched).update(dict.fromkeys(branches))
    for branch in ended:
        drop_lineage(db, branch)
    _note(db, list(ended), gone=True)
    _note(db, [one for one in touched if one not in ended], gone=False)


def _concerned(db: sqlite3.Connection, table: str, row: Mapping[str, Any]) -> tuple[list[str], bool]:
    """Gives the branches (or the session) of a changed row, and whether they can't be resumed any more."""
    if table == "messages":
        sql = "SELECT DISTINCT branch FROM paths JOIN branches ON id = branch WHERE digest = ? AND tenant = ?"
        found = db.execute(sql, (row["digest"], row["tenant"]))
        return [name for (name,) in found], row["role"] not in _RESUMABLE
    if table == "branches":
        return [row["id"]], True
    if table == "emissions":
        found = db.execute("SELECT branch FROM emission_branches WHERE emission = ?", (row["id"],))
        return [name for (name,) in found], True
    return [row[name] for name in ("branch", "session") if row.get(name)], False


def _redact_row(db: sqlite3.Connection, table: str, name: Key, redactor: Redactor) -> Mapping[str, Any]:
    """Takes the words out of one row, and gives it as it was; a record that can't do without them goes whole."""
    columns = _columns(db, table)
    where = " AND ".join(f"{column} = ?" for column in _key(db, table))
    cursor = db.execute(f"SELECT * FROM {table} WHERE {where}", name)  # noqa: S608
    row = cursor.fetchone()
    if row is None:
        return {}
    was = dict(zip((column[0] for column in cursor.description), row, strict=True))
    left = {column: redactor.column(text, table) for column in columns if isinstance(text := was[column], str)}
    if table == "messages" and not left["body"].startswith("{"):
        left["body"] = msgspec.json.encode({"role": was["role"], "content": FORGOTTEN}).decode()
    if not left.get("record", "{").startswith("{"):
        db.execute(f"DELETE FROM {table} WHERE {where}", name)  # noqa: S608
        return was
    changes = ", ".join(f"{column} = ?" for column in left)
    db.execute(f"UPDATE {table} SET {changes} WHERE {where}", (*left.values(), *name))  # noqa: S608
    return was


def _note(db: sqlite3.Connection, names: Sequence[str], *, gone: bool) -> None:
    """Tells writers and the memory of running proxies which sessions and branches it was."""
    at = now()
    rows = [(name, int(gone), at) for name in names if name]
    db.executemany("INSERT INTO forgotten (id, gone, at) VALUES (?, ?, ?)", rows)
