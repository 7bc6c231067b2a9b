"""Takes rows away: whole sessions, facts with their history, and what nothing refers to any more.

Tables are found by their columns, so that a table that comes later is emptied as well. Callers begin and commit.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Sequence

import msgspec

from proxy.lineage.records import EmissionRecord

TOKEN = re.compile(r"\[secret:[a-z_]{1,24}:([0-9a-f]{16})\]")
_FACTS = ("facts", "fact_events", "unlisted")
_CHUNK = 500


def tables(db: sqlite3.Connection) -> dict[str, tuple[str, ...]]:
    """Gives the columns of each ordinary table; the search index has its own way."""
    names = db.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table'"
        " AND name NOT LIKE 'sqlite_%' AND name NOT LIKE 'facts_text%'"
    ).fetchall()
    return {name: tuple(row[1] for row in db.execute(f"PRAGMA table_info({name})")) for (name,) in names}


def branches_of(db: sqlite3.Connection, session: str) -> list[str]:
    """Gives the ids of a session's branches."""
    return [name for (name,) in db.execute("SELECT id FROM branches WHERE session = ?", (session,))]


def drop_session(db: sqlite3.Connection, session: str) -> int:
    """Deletes log, archive, receipts and lineage of one session, and gives how many messages left; facts stay."""
    branches = branches_of(db, session)
    found = {name: columns for name, columns in tables(db).items() if name not in _FACTS}
    receipts = [name for (name,) in db.execute("SELECT id FROM receipts WHERE session = ?", (session,))]
    for table, columns in found.items():
        if "branch" in columns:
            _delete(db, table, "branch", branches)
        if "receipt" in columns:
            _delete(db, table, "receipt", receipts)
    for table, columns in found.items():
        if "session" in columns:
            _delete(db, table, "session", [session])
    _delete(db, "sessions", "id", [session])
    _drop_emissions(db, branches)
    return drop_orphans(db)


def drop_orphans(db: sqlite3.Connection) -> int:
    """Deletes the messages that stand in no path any more, and gives how many."""
    return db.execute(
        "DELETE FROM messages WHERE (tenant, digest) NOT IN"
        " (SELECT tenant, digest FROM paths JOIN branches ON id = branch"
        " UNION ALL SELECT tenant, digest FROM reply_items)"
    ).rowcount


def drop_lineage(db: sqlite3.Connection, branch: str) -> None:
    """Lets nothing find a branch again: what comes back of its conversation counts as new."""
    for table in ("marks", "hints", "emission_branches", "replies", "reply_items"):
        _delete(db, table, "branch", [branch])
    db.execute("UPDATE branches SET state = '' WHERE id = ?", (branch,))
    _drop_emissions(db, [branch])


def drop_facts(db: sqlite3.Connection, ids: Iterable[str]) -> set[str]:
    """Deletes facts with all that was ever noted of them, and gives their projects."""
    projects = set()
    for name in ids:
        row = db.execute("SELECT project, words FROM facts WHERE id = ?", (name,)).fetchone()
        if row:
            projects.add(str(row[0]))
            db.execute("DELETE FROM facts_text WHERE rowid = ?", (row[1],))
        db.execute("DELETE FROM unlisted WHERE event IN (SELECT seq FROM fact_events WHERE fact = ?)", (name,))
        db.execute("DELETE FROM fact_events WHERE fact = ?", (name,))
        db.execute("DELETE FROM facts WHERE id = ?", (name,))
    return projects


def drop_secrets(db: sqlite3.Connection) -> int:
    """Deletes sealed values whose token stands in no text any more, and gives how many."""
    named: set[str] = set()
    for table, columns in tables(db).items():
        if table == "secrets":
            continue
        for column in columns:
            rows = db.execute(f"SELECT {column} FROM {table} WHERE {column} LIKE '%[secret:%'")  # noqa: S608
            named.update(token for (text,) in rows if isinstance(text, str) for token in TOKEN.findall(text))
    dropped = [(token,) for (token,) in db.execute("SELECT DISTINCT token FROM secrets") if token not in named]
    db.executemany("DELETE FROM secrets WHERE token = ?", dropped)
    return len(dropped)


def _drop_emissions(db: sqlite3.Connection, branches: Sequence[str]) -> None:
    """Deletes answers that no branch has any more; those of several forget what this one's words were."""
    db.execute("DELETE FROM emissions WHERE id NOT IN (SELECT emission FROM emission_branches)")
    for branch in branches:
        rows = db.execute("SELECT id, record FROM emissions WHERE instr(record, ?)", (branch,)).fetchall()
        for name, record in rows:
            was = msgspec.json.decode(record, type=EmissionRecord)
            left = msgspec.structs.replace(
                was,
                branches=tuple(one for one in was.branches if one != branch),
                snapshots=tuple(one for one in was.snapshots if one.branch != branch),
            )
            db.execute("UPDATE emissions SET record = ? WHERE id = ?", (msgspec.json.encode(left).decode(), name))


def _delete(db: sqlite3.Connection, table: str, column: str, values: Sequence[str]) -> None:
    for at in range(0, len(values), _CHUNK):
        part = values[at : at + _CHUNK]
        db.execute(f"DELETE FROM {table} WHERE {column} IN ({','.join('?' * len(part))})", part)  # noqa: S608
