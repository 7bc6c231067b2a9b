"""`goalkeeper pins`: what binds in a session, and changing it by hand."""

from __future__ import annotations

import argparse
import sqlite3

from proxy.cli.data import Data, open_data
from proxy.cli.output import add_json_flag, print_json, print_table
from proxy.errors import BadRequest, NotFound
from proxy.store import queries
from proxy.store.rows import Action

_KINDS = ("goal", "correction", "constraint", "preference", "decision", "commitment", "fact")


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds list, add, close and retract."""
    doing = parser.add_subparsers(dest="doing", required=True, metavar="list|add|close|retract")
    listing = doing.add_parser("list", help="list pins")
    listing.add_argument("session", nargs="?", default="last", help="id, beginning of one, or last (default)")
    add = doing.add_parser("add", help="pin a text; it binds from the session's next request on")
    add.add_argument("session", help="id, beginning of one, or last")
    add.add_argument("text")
    add.add_argument("--kind", choices=_KINDS, default="constraint", help="default constraint")
    close = doing.add_parser("close", help="a pin is done; it binds no longer from the next request on")
    retract = doing.add_parser("retract", help="a pin was wrong; it binds no longer from the next request on")
    for command in (close, retract):
        command.add_argument("pin", help="pin id or the beginning of one")
        command.add_argument("--session", help="when several sessions have this pin")
    for command in (listing, add, close, retract):
        add_json_flag(command)


def run(args: argparse.Namespace) -> int:
    """Runs one of them."""
    data = open_data(args)
    if args.doing == "list":
        return _list(data.db, args)
    if args.doing == "add":
        if not args.text.strip():
            raise BadRequest("an empty text can't be pinned")
        session = queries.resolve(data.db, "sessions", args.session)
        return _edit(data, args, session, "", args.kind, args.text)
    pin = _find(data.db, args.pin, args.session)
    return _edit(data, args, pin["session"], pin["id"], pin["kind"], "")


def _list(db: sqlite3.Connection, args: argparse.Namespace) -> int:
    session = queries.resolve(db, "sessions", args.session)
    found = queries.pins(db, {"session": session})
    if args.json:
        print_json(found)
    else:
        print_table(("id", "kind", "status", "turn", "text"), found["pins"], f"no pins in session {session}")
    return 0


def _find(db: sqlite3.Connection, prefix: str, session: str | None) -> queries.Row:
    query = {"session": queries.resolve(db, "sessions", session)} if session else {}
    found = [pin for pin in queries.pins(db, query)["pins"] if prefix and pin["id"].startswith(prefix)]
    if not found:
        raise NotFound(f"no pin begins with {prefix!r}")
    if len(found) > 1:
        places = ", ".join(f"{pin['id']} in session {pin['session']}" for pin in found)
        raise BadRequest(f"{prefix!r} can mean {places}: give more of the id, or --session")
    return found[0]


def _edit(data: Data, args: argparse.Namespace, session: str, pin: str, kind: str, text: str) -> int:
    action: Action = args.doing
    number = queries.edit_pin(data.db, data.seal, queries.Edit(session, action, pin, kind, text))
    if args.json:
        print_json({"edit": number, "session": session, "action": action, "pin": pin})
    else:
        print(f"recorded; it takes effect with the next request of session {session}")
    return 0
