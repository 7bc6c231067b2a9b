"""`goalkeeper context`: what a session's context consists of, in tokens."""

from __future__ import annotations

import argparse

import msgspec

from proxy.cli.data import Data, open_data
from proxy.cli.output import add_json_flag, print_one
from proxy.compaction.insertion import Insertion
from proxy.errors import NotFound
from proxy.store import queries


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the session."""
    parser.add_argument("session", nargs="?", default="last", help="id, beginning of one, or last (default)")
    add_json_flag(parser)


def run(args: argparse.Namespace) -> int:
    """Prints it."""
    data = open_data(args)
    found = _context(data, queries.resolve(data.db, "sessions", args.session))
    print_one(found, as_json=args.json)
    return 0


def _context(data: Data, session: str) -> queries.Row:
    row = data.db.execute(
        "SELECT record FROM receipts WHERE session = ? AND branch != '' ORDER BY seq DESC LIMIT 1", (session,)
    ).fetchone()
    if row is None:
        raise NotFound(f"session {session} has no receipt yet")
    receipt = queries.EMPTY_RECEIPT | msgspec.json.decode(row[0])
    standing = [one for one in data.reads.insertions(receipt["track"]) if one.id in receipt["insertions"]]
    inserted = sum(one.tokens for one in standing)
    left = {digest for one in standing for digest in one.covers}
    return {
        "session": session,
        "branch": receipt["branch"],
        "receipt": receipt["id"],
        "budget": receipt["budget"],
        "forwarded": receipt["tokens_out"],
        "pinned": sum(_pinned(one) for one in standing),
        "digested": sum(one.tokens if one.reason == "recall" else one.log_tokens for one in standing),
        "kept": max(receipt["tokens_out"] - inserted, 0),
        "elided": _elided(data, receipt["track"], left),
        "free": max(receipt["budget"] - receipt["tokens_out"], 0),
    }


def _pinned(insertion: Insertion) -> int:
    if insertion.reason == "recall":
        return 0
    return insertion.pin_tokens or insertion.tokens - insertion.log_tokens


def _elided(data: Data, branch: str, digests: set[str]) -> int:
    """Gives the tokens of the messages that are in the archive and no longer in the body."""
    row = data.db.execute("SELECT tenant FROM branches WHERE id = ?", (branch,)).fetchone()
    return sum(data.reads.tokens_of(row[0], digests).values()) if row else 0
