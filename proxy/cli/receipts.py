"""`goalkeeper receipts`: what happened to each request."""

from __future__ import annotations

import argparse

from proxy.cli.data import open_data
from proxy.cli.output import add_json_flag, print_json, print_one, print_table
from proxy.errors import BadRequest
from proxy.store import queries

_COLUMNS = ("id", "session", "relation", "compaction", "tokens_in", "tokens_out", "status", "flags")


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds list and show."""
    doing = parser.add_subparsers(dest="doing", required=True, metavar="list|show")
    listing = doing.add_parser("list", help="list receipts, newest last")
    listing.add_argument("--session", help="only this session (id, beginning of one, or last)")
    listing.add_argument("--limit", type=int, default=50, help="only the newest so many (default 50, 0 for all)")
    show = doing.add_parser("show", help="show one receipt")
    show.add_argument("id", help="id, beginning of one, or last")
    for command in (listing, show):
        add_json_flag(command)


def run(args: argparse.Namespace) -> int:
    """Runs one of them."""
    db = open_data(args).db
    if args.doing == "show":
        receipt = queries.receipt(db, args.id)
        print_one(receipt, as_json=args.json)
        return 0
    if args.limit < 0:
        raise BadRequest("--limit must not be negative")
    query = {"limit": str(args.limit or -1)}
    if args.session:
        query["session"] = queries.resolve(db, "sessions", args.session)
    found = queries.receipts(db, query)
    if args.json:
        print_json(found)
    else:
        rows = [receipt | {"flags": ", ".join(receipt["flags"])} for receipt in found["receipts"]]
        print_table(_COLUMNS, rows, "no receipts")
    return 0
