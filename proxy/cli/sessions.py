"""`goalkeeper sessions`: the conversations that passed through."""

from __future__ import annotations

import argparse

from proxy.cli.data import open_data
from proxy.cli.output import add_json_flag, print_json, print_one, print_table
from proxy.store import queries


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds list and show."""
    doing = parser.add_subparsers(dest="doing", required=True, metavar="list|show")
    listing = doing.add_parser("list", help="list sessions, oldest first")
    listing.add_argument("--project", help="only this project")
    show = doing.add_parser("show", help="show one session with the messages of its newest branch")
    show.add_argument("id", help="id, beginning of one, or last")
    for command in (listing, show):
        add_json_flag(command)


def run(args: argparse.Namespace) -> int:
    """Runs one of them."""
    data = open_data(args)
    db = data.db
    if args.doing == "show":
        session = queries.session(db, args.id)
        session["transcript"] = queries.transcript(db, data.reads, session["id"])
        print_one(session, as_json=args.json)
        return 0
    found = queries.sessions(db, {"project": args.project} if args.project else {})
    if args.json:
        print_json(found)
    else:
        print_table(("id", "client", "requests", "updated_at", "project"), found["sessions"], "no sessions")
    return 0
