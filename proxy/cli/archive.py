"""`goalkeeper archive`: gives back what an id in a forwarded body stands for."""

from __future__ import annotations

import argparse
import sys

import msgspec

from proxy.cli.data import Data, open_data
from proxy.cli.main import printable
from proxy.cli.output import add_json_flag, print_json
from proxy.dialects.stored import read_stored
from proxy.errors import NotFound
from proxy.store import queries


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds show."""
    doing = parser.add_subparsers(dest="doing", required=True, metavar="show")
    show = doing.add_parser("show", help="show a message, or all messages that an inserted block stands for")
    show.add_argument("id", help="digest of a message or id of an insertion, or the beginning of one, or last")
    show.add_argument("--raw", action="store_true", help="the client's own bytes with their secret values")
    add_json_flag(show)


def run(args: argparse.Namespace) -> int:
    """Shows it."""
    data = open_data(args)
    found = _entries(data, args.id)
    if args.raw:
        for entry in found:
            sys.stdout.buffer.write(entry["raw"] + b"\n")
        return 0
    for entry in found:
        del entry["raw"]
    if args.json:
        print_json(found[0] if len(found) == 1 else _together(args.id, found))
        return 0
    for entry in found:
        print(f"--- {entry['id']} {printable(entry['role'])}")
        print(printable(entry["text"]))
    return 0


def _entries(data: Data, prefix: str) -> list[queries.Row]:
    """Gives the messages that an id stands for. Raises NotFound."""
    digests = _covered(data, prefix) or [queries.resolve(data.db, "messages", prefix)]
    rows = [
        row
        for digest in digests
        for row in data.db.execute("SELECT digest, role, tenant FROM messages WHERE digest = ? LIMIT 1", (digest,))
    ]
    if not rows:
        raise NotFound(f"what {prefix} stands for is not in the archive any more")
    return [_entry(data, *row) for row in rows]


def _covered(data: Data, prefix: str) -> list[str]:
    try:
        found = queries.resolve(data.db, "insertions", prefix) if prefix != "last" else ""
    except NotFound:
        return []
    row = data.db.execute("SELECT branch FROM insertions WHERE id = ? LIMIT 1", (found,)).fetchone()
    insertions = data.reads.insertions(row[0]) if row else ()
    return [digest for one in insertions if one.id == found for digest in one.covers]


def _entry(data: Data, digest: str, role: str, tenant: str) -> queries.Row:
    """Gives a message as it is stored, secret values masked; its own bytes are under `raw`."""
    raw = data.reads.load_messages(tenant, [digest])[digest]
    row = data.db.execute("SELECT body FROM messages WHERE tenant = ? AND digest = ?", (tenant, digest)).fetchone()
    parts = read_stored(row[0].encode()).parts
    calls = [f"{part.name} {part.text}" for part in parts if part.kind == "call"]
    texts = [part.text for part in parts if part.kind in ("text", "result")]
    return {
        "id": digest,
        "role": role,
        "text": "\n".join(texts + calls),
        "body": msgspec.json.decode(row[0]),
        "raw": raw,
    }


def _together(name: str, entries: list[queries.Row]) -> queries.Row:
    text = "\n\n".join(entry["text"] for entry in entries)
    return {"id": name, "role": "", "text": text, "body": [entry["body"] for entry in entries], "messages": entries}
