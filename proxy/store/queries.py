"""What people ask of the store, as plain dicts: for the JSON doors and for the command line. Texts stay masked."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from proxy.compaction.receipt import Receipt
from proxy.dialects.stored import read_stored
from proxy.errors import BadRequest, NotFound
from proxy.redaction import Sealer
from proxy.store.fact_search import expression, search
from proxy.store.reads import Reads
from proxy.store.rows import Action, now
from proxy.store.schema import transaction
from proxy.store.sealing import Sealing
from proxy.store.signal import EditMark

Row = dict[str, Any]
Query = Mapping[str, str]

_NO_QUERY: Query = {}
# records leave out what has its default; readers get every field
EMPTY_RECEIPT: Row = {
    name: msgspec.to_builtins(value) for name, value in msgspec.structs.asdict(Receipt("", "")).items()
}
_LATER_FIELDS: Row = {
    "title": "",
    "reason": "",
    "rejected": [],
    "consequence": "",
    "revisit": "",
    "promoted": "",
    "edited": [],
}  # older records lack them
_TABLES = {
    "sessions": "id",
    "receipts": "id",
    "facts": "id",
    "insertions": "id",
    "branches": "id",
    "messages": "digest",
}
_NEWEST = {
    "sessions": "updated_at",
    "branches": "updated_at",
    "messages": "at",
    "facts": "id",
    "receipts": "seq",
    "insertions": "seq",
}


def resolve(db: sqlite3.Connection, table: str, prefix: str) -> str:
    """Gives the one id that begins with `prefix`; `last` is the newest. Raises NotFound, or BadRequest for several."""
    column = _TABLES[table]
    if prefix == "last":
        row = db.execute(f"SELECT {column} FROM {table} ORDER BY {_NEWEST[table]} DESC, rowid DESC LIMIT 1").fetchone()  # noqa: S608 — names from the tables above
        if not row:
            raise NotFound(f"there are no {table} yet")
        return str(row[0])
    sql = f"SELECT DISTINCT {column} FROM {table} WHERE substr({column}, 1, length(?1)) = ?1 LIMIT 3"  # noqa: S608
    found = [row[0] for row in db.execute(sql, (prefix,))]
    if prefix in found:
        return prefix
    if not prefix or not found:
        raise NotFound(f"no id in {table} begins with {prefix!r}")
    if len(found) > 1:
        raise BadRequest(f"{prefix!r} is the beginning of several ids in {table}: {', '.join(found)}")
    return str(found[0])


def facts(db: sqlite3.Connection, query: Query = _NO_QUERY) -> dict[str, list[Row]]:
    """Gives facts, oldest first; filters: project, session, kind, status, text (full-text search)."""
    where, values = _filters(query, ("project", "session", "kind", "status"))
    if query.get("text"):
        where.append("id IN (SELECT fact FROM facts_text WHERE facts_text MATCH ?)")
        values.append(expression(query["text"]))
    rows = db.execute(f"SELECT record FROM facts {_where(where)} ORDER BY id", values)  # noqa: S608
    return {"facts": [_fact(json.loads(text)) for (text,) in rows]}


def found_facts(db: sqlite3.Connection, words: str, *, project: str = "", limit: int = 50) -> dict[str, list[Row]]:
    """Gives the facts that hold all these words, the best first. Raises BadRequest."""
    return {"facts": [_fact(record) for record in search(db, words, project=project, limit=limit)]}


def fact(db: sqlite3.Connection, prefix: str) -> Row:
    """Gives one fact with its whole history. Raises NotFound."""
    found = resolve(db, "facts", prefix)
    (text,) = db.execute("SELECT record FROM facts WHERE id = ?", (found,)).fetchone()
    events = db.execute("SELECT seq, at, what, record FROM fact_events WHERE fact = ? ORDER BY seq", (found,))
    history = [
        {"event": seq, "at": at, "what": what, "status": json.loads(was)["status"]} for seq, at, what, was in events
    ]
    return _fact(json.loads(text)) | {"history": history}


def pins(db: sqlite3.Connection, query: Query = _NO_QUERY) -> dict[str, list[Row]]:
    """Gives pins as they stood with each session's last request; filters: session, kind, status."""
    found = [
        one
        for one in facts(db, query)["facts"]
        if one["session"] and one["pin"].startswith("p") and one["status"] != "candidate"
    ]
    names = {one["id"]: one["pin"] for one in found}
    return {
        "pins": [
            {name: one[name] for name in ("kind", "status", "scope", "turn", "rule", "session", "fallen")}
            | {"id": one["pin"], "text": one["quote"] or one["text"], "fact": one["id"]}
            | {"superseded_by": names.get(one["superseded_by"], "")}
            for one in found
        ]
    }


def sessions(db: sqlite3.Connection, query: Query = _NO_QUERY) -> dict[str, list[Row]]:
    """Gives sessions with their branches, oldest first; filters: project, client."""
    where, values = _filters(query, ("project", "client", "id"))
    names = ("id", "client", "model", "project", "created_at", "updated_at", "requests")
    rows = db.execute(f"SELECT {', '.join(names)} FROM sessions {_where(where)} ORDER BY created_at, rowid", values)  # noqa: S608
    found: dict[str, Row] = {row[0]: dict(zip(names, row, strict=True)) | {"branches": []} for row in rows}
    for session, *row in db.execute("SELECT session, id, kind, parent, epoch FROM branches ORDER BY rowid"):
        if session in found:
            found[session]["branches"].append(dict(zip(("id", "kind", "parent", "epoch"), row, strict=True)))
    return {"sessions": list(found.values())}


def session(db: sqlite3.Connection, prefix: str) -> Row:
    """Gives one session with its branches. Raises NotFound."""
    return sessions(db, {"id": resolve(db, "sessions", prefix)})["sessions"][0]


def receipts(db: sqlite3.Connection, query: Query = _NO_QUERY) -> dict[str, list[Row]]:
    """Gives receipts, newest last; filters: session, branch, and `limit` for the newest only."""
    where, values = _filters(query, ("session", "branch", "id"))
    limit = query.get("limit", "-1")
    if not limit.removeprefix("-").isdigit():
        raise BadRequest(f"limit: {limit!r} is no number")
    rows = db.execute(
        f"SELECT record FROM (SELECT seq, record FROM receipts {_where(where)} ORDER BY seq DESC LIMIT ?) ORDER BY seq",  # noqa: S608
        (*values, int(limit)),
    )
    return {"receipts": [_receipt(json.loads(text)) for (text,) in rows]}


def receipt(db: sqlite3.Connection, prefix: str) -> Row:
    """Gives one receipt. Raises NotFound."""
    return receipts(db, {"id": resolve(db, "receipts", prefix)})["receipts"][0]


def stats(db: sqlite3.Connection, _: Query = _NO_QUERY) -> Row:
    """Gives how much of everything there is."""
    tables = (
        "sessions",
        "branches",
        "messages",
        "insertions",
        "receipts",
        "tool_calls",
        "facts",
        "pin_edits",
        "secrets",
    )
    counts: Row = {table: db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables}  # noqa: S608
    pages, size = (db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
    return counts | {"bytes": pages * size}


class Edit(NamedTuple):
    """A change of pins that a person makes; `pin` is empty for add, `text` for the others."""

    session: str
    action: Action
    pin: str
    kind: str
    text: str
    rule: str = "by hand"  # with a model's proposal, what proposed it, and which characters of which turn they are
    turn: str = ""
    start: int = 0
    stop: int = 0


def edit_pin(db: sqlite3.Connection, seal: Sealer, edit: Edit) -> int:
    """Records a change for the session's next request and gives its number. Raises NotFound without that session."""
    found = db.execute("SELECT tenant FROM sessions WHERE id = ?", (edit.session,)).fetchone()
    if found is None:
        raise NotFound(f"no session {edit.session!r}")
    with transaction(db):
        masked = Sealing(db, seal).plain(found[0], edit.text)
        added = db.execute(
            "INSERT INTO pin_edits (tenant, session, action, pin, kind, text, at, rule, turn, start, stop)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (found[0], edit.session, edit.action, edit.pin, edit.kind, masked, now(), *edit[5:]),
        )
    tell(db)
    return int(added.lastrowid or 0)


def tell(db: sqlite3.Connection) -> None:
    """Lets a running proxy know that there is an edit to read."""
    mark = EditMark(Path(db.execute("PRAGMA database_list").fetchone()[2]).parent)
    mark.change()
    mark.close()


def transcript(db: sqlite3.Connection, reads: Reads, session: str) -> list[Row]:
    """Gives the messages of a session's newest branch, and the answer that no request has brought back yet; masked."""
    row = db.execute(
        "SELECT id, tenant, length FROM branches WHERE session = ? AND length > 0 ORDER BY updated_at DESC, rowid DESC",
        (session,),
    ).fetchone()
    if row is None:
        return []
    branch, tenant, length = row
    found = []
    for digest in reads.path(branch, length):
        body = db.execute("SELECT body FROM messages WHERE tenant = ? AND digest = ?", (tenant, digest)).fetchone()
        found.append(_said(body[0]) if body else {"role": "", "text": "", "calls": [], "missing": digest})
    newest = db.execute(
        "SELECT record FROM answers WHERE branch = ?1 AND receipt >= (SELECT max(since) FROM paths WHERE branch = ?1)"
        " ORDER BY receipt DESC",
        (branch,),
    ).fetchone()
    if newest:
        answer = json.loads(newest[0])
        found.append({"role": "assistant", "text": answer["text"], "calls": answer["calls"]})
    return found


def _said(body: str) -> Row:
    message = read_stored(body.encode())
    calls = [part for part in message.parts if part.kind == "call"]
    told = [{"id": call.call_id, "name": call.name, "arguments": call.text} for call in calls]
    return {"role": message.role, "text": message.text, "calls": told}


def _filters(query: Query, names: tuple[str, ...]) -> tuple[list[str], list[str]]:
    used = [name for name in names if query.get(name)]
    return [f"{name} = ?" for name in used], [query[name] for name in used]


def _where(conditions: list[str]) -> str:
    return "WHERE " + " AND ".join(conditions) if conditions else ""


def _fact(record: Row) -> Row:
    supersedes = record.pop("supersedes")
    record |= {name: record.get(name, value) for name, value in _LATER_FIELDS.items()}
    return record | {"supersedes": supersedes[-1] if supersedes else "", "all_superseded": supersedes}


def _receipt(record: Row) -> Row:
    return EMPTY_RECEIPT | record
