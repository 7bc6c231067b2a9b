"""`goalkeeper receipts`: what happened to each request, and to each tool call."""

from __future__ import annotations

import argparse

from proxy.cli.data import Data, open_data
from proxy.cli.output import add_json_flag, print_json, print_one, print_table
from proxy.errors import BadRequest
from proxy.store import queries

_COLUMNS = ("id", "session", "relation", "compaction", "tokens_in", "tokens_out", "status", "flags")
_TRAIL = ("at", "receipt", "what", "name", "arguments", "ms", "outcome")


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds list, show, trail, diff and replay."""
    doing = parser.add_subparsers(dest="doing", required=True, metavar="list|show|trail|diff|replay")
    listing = doing.add_parser("list", help="list receipts, newest last")
    listing.add_argument("--session", help="only this session (id, beginning of one, or last)")
    listing.add_argument("--limit", type=int, default=50, help="only the newest so many (default 50, 0 for all)")
    show = doing.add_parser("show", help="show one receipt")
    show.add_argument("id", help="id, beginning of one, or last")
    trail = doing.add_parser("trail", help="every request, rewrite and tool call of a session, in order")
    trail.add_argument("session", nargs="?", default="last", help="id, beginning of one, or last (default)")
    trail.add_argument("--limit", type=int, default=0, help="only the newest so many lines (default: all)")
    diff = doing.add_parser("diff", help="what was changed in a body, or differs between the bodies of two receipts")
    diff.add_argument("id", help="id, beginning of one, or last")
    diff.add_argument("other", nargs="?", help="a second receipt; without it: what came against what was forwarded")
    diff.add_argument("--full", action="store_true", help="whole texts, not their first line")
    replay = doing.add_parser("replay", help="rebuild the body that was forwarded; exit code 1 when it is another one")
    replay.add_argument("id", help="id, beginning of one, or last")
    replay.add_argument("--body", action="store_true", help="print the body's bytes")
    for command in (listing, show, trail, diff, replay):
        add_json_flag(command)


def run(args: argparse.Namespace) -> int:
    """Runs one of them."""
    data = open_data(args)
    if args.doing == "show":
        print_one(queries.receipt(data.db, args.id), as_json=args.json)
        return 0
    if args.doing in ("diff", "replay"):
        from proxy.cli import bodies  # noqa: PLC0415  the dialects' import costs more than a list of receipts

        return bodies.diff(data, args) if args.doing == "diff" else bodies.replay(data, args)
    if args.limit < 0:
        raise BadRequest("--limit must not be negative")
    return _trail(data, args) if args.doing == "trail" else _list(data, args)


def _list(data: Data, args: argparse.Namespace) -> int:
    query = {"limit": str(args.limit or -1)}
    if args.session:
        query["session"] = queries.resolve(data.db, "sessions", args.session)
    found = queries.receipts(data.db, query)
    if args.json:
        print_json(found)
    else:
        rows = [receipt | {"flags": ", ".join(receipt["flags"])} for receipt in found["receipts"]]
        print_table(_COLUMNS, rows, "no receipts")
    return 0


def _trail(data: Data, args: argparse.Namespace) -> int:
    from proxy.store.trail import trail  # noqa: PLC0415  as above

    session = queries.resolve(data.db, "sessions", args.session)
    rows = trail(queries.receipts(data.db, {"session": session})["receipts"])[-args.limit :]
    if args.json:
        print_json({"session": session, "trail": rows})
        return 0
    shown = [row | {"ms": "" if row["ms"] is None else row["ms"], "arguments": row["arguments"][:8]} for row in rows]
    print_table(_TRAIL, shown, f"nothing happened in session {session} yet")
    return 0
