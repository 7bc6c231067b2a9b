"""Where a fact comes from: its words in their surroundings, requests that carried it, what it replaced; all masked."""

from __future__ import annotations

import sqlite3
from typing import Any

from proxy.dialects.stored import read_stored
from proxy.store import queries

Row = dict[str, Any]
_NEAR = 600  # characters of the messages around it
_SAID = 4000  # characters of the message itself


def origin(db: sqlite3.Connection, prefix: str) -> Row:
    """Gives all that is known of a fact's origin. Raises NotFound."""
    fact = queries.fact(db, prefix)
    return {
        "fact": fact,
        "surroundings": _surroundings(db, fact),
        "receipts": _receipts(db, fact),
        "blocks": _blocks(db, fact),
        "replaced": [_short(db, name) for name in fact["all_superseded"]],
        "replaced_by": _successors(db, fact),
    }


def _surroundings(db: sqlite3.Connection, fact: Row) -> Row:
    """The message that held the words, and its neighbours; {} when the archive doesn't have it (any more)."""
    digest = fact["source"].get("message", "")
    row = db.execute(
        "SELECT branch, pos, tenant FROM paths JOIN branches ON id = branch WHERE session = ? AND digest = ?"
        " ORDER BY since LIMIT 1",
        (fact["session"], digest),
    ).fetchone()
    if not digest or row is None:
        return {}
    branch, place, tenant = row
    around = {"before": _message(db, tenant, branch, place - 1, _NEAR), "after": _after(db, tenant, branch, place)}
    return {"said": _message(db, tenant, branch, place, _SAID), "message": digest, "branch": branch} | around


def _message(db: sqlite3.Connection, tenant: str, branch: str, place: int, limit: int) -> Row:
    row = db.execute(
        "SELECT body FROM messages WHERE tenant = ?1 AND digest ="
        " (SELECT digest FROM paths WHERE branch = ?2 AND pos = ?3 ORDER BY since DESC LIMIT 1)",
        (tenant, branch, place),
    ).fetchone()
    if row is None:
        return {}
    message = read_stored(row[0].encode())
    calls = [f"{part.name} {part.text}" for part in message.parts if part.kind == "call"]
    text = "\n".join([message.text, *calls]).strip()
    return {"role": message.role, "text": text if len(text) <= limit else f"{text[: limit - 1]}…"}


def _after(db: sqlite3.Connection, tenant: str, branch: str, place: int) -> Row:
    """What came next: the next message, or the answer that no request has brought back yet."""
    found = _message(db, tenant, branch, place + 1, _NEAR)
    if found:
        return found
    sql = "SELECT json_extract(record, '$.text') FROM answers WHERE branch = ? ORDER BY receipt DESC LIMIT 1"
    row = db.execute(sql, (branch,)).fetchone()
    return {"role": "assistant", "text": row[0][:_NEAR]} if row and row[0] else {}


def _receipts(db: sqlite3.Connection, fact: Row) -> Row:
    """How many requests carried the pin, the first and the newest of them."""
    count, first, last = db.execute(
        "SELECT count(*), min(id), max(id) FROM receipts WHERE session = ? AND session != '' AND instr(record, ?)",
        (fact["session"], f'"{fact["pin"]}"'),
    ).fetchone()
    return {"count": count, "first": first or "", "last": last or ""}


def _blocks(db: sqlite3.Connection, fact: Row) -> list[str]:
    rows = db.execute(
        "SELECT DISTINCT i.id FROM insertions i JOIN branches b ON b.id = i.branch WHERE b.session = ?"
        " AND instr(i.record, ?) ORDER BY i.seq",
        (fact["session"], f'"{fact["pin"]}"'),
    )
    return [name for (name,) in rows]


def _short(db: sqlite3.Connection, name: str) -> Row:
    row = db.execute(
        "SELECT id, kind, status, json_extract(record, '$.text') FROM facts WHERE id = ?", (name,)
    ).fetchone()
    if row is None:
        return {"id": name, "kind": "", "status": "forgotten", "text": ""}
    return dict(zip(("id", "kind", "status", "text"), row, strict=True))


def _successors(db: sqlite3.Connection, fact: Row) -> list[Row]:
    """What replaced it, what replaced that, and so on."""
    found: list[Row] = []
    seen = {fact["id"]}
    name = fact["superseded_by"]
    while name and name not in seen:
        seen.add(name)
        found.append(_short(db, name))
        row = db.execute("SELECT json_extract(record, '$.superseded_by') FROM facts WHERE id = ?", (name,)).fetchone()
        name = row[0] if row else ""
    return found
