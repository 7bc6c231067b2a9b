"""`goalkeeper facts forget`: takes sessions, or words wherever they stand, out of every file of the data folder."""

from __future__ import annotations

import argparse
import re
import sys
from typing import TYPE_CHECKING

from proxy.cli.data import Data, open_data
from proxy.cli.output import Commands, add_json_flag, line, print_json
from proxy.errors import BadRequest, StoreError
from proxy.store import queries

if TYPE_CHECKING:
    from proxy.store.forgetting import Found, Wish

DOING = ("forget",)


def configure(doing: Commands) -> None:
    """Adds forget."""
    forget = doing.add_parser("forget", help="show what would be forgotten; with --yes, forget it everywhere")
    what = forget.add_mutually_exclusive_group(required=True)
    what.add_argument("--session", action="append", help="a session with all that was kept of it (repeatable)")
    what.add_argument("--project", help="all sessions and facts of a project")
    what.add_argument("--pattern", metavar="REGEX", help="words wherever they stand, by a regular expression")
    what.add_argument("--person", metavar="NAME", help="what a person said in imports, and the name wherever it stands")
    forget.add_argument("--yes", action="store_true", help="do it; there is no way back")
    add_json_flag(forget)


def run(args: argparse.Namespace) -> int:
    """Shows what would go; with consent takes it away, and looks into the raw files afterwards."""
    from proxy.store.forgetting import find  # noqa: PLC0415 (only what forgets needs it)

    data = open_data(args)
    wish = _wish(data, args)
    found = find(data.db, data.seal, wish)
    if not args.json:
        _tell(found)
    if found.nothing or not (args.yes or _agreed(args)):
        if args.json:
            print_json(_as_fields(found) | {"done": False})
        elif not found.nothing:
            print("nothing is forgotten yet: add --yes")
        return 0
    return _forgotten(data, wish, found, as_json=args.json)


def _wish(data: Data, args: argparse.Namespace) -> Wish:
    from proxy.store.forgetting import Wish  # noqa: PLC0415

    if args.session:
        return Wish(sessions=tuple(queries.resolve(data.db, "sessions", one) for one in args.session))
    if args.project is not None:
        return Wish(project=args.project)
    if args.person is not None:
        name = r"\s+".join(re.escape(part) for part in args.person.split())
        if not name:
            raise BadRequest("--person: an empty name")
        return Wish(pattern=re.compile(rf"(?<!\w){name}(?!\w)", re.IGNORECASE), person=args.person)
    try:
        pattern = re.compile(args.pattern)
    except re.error as error:
        raise BadRequest(f"--pattern: no regular expression: {error}") from error
    if pattern.search(""):
        raise BadRequest("--pattern: this matches everywhere, even where nothing stands")
    return Wish(pattern=pattern)


def _agreed(args: argparse.Namespace) -> bool:
    if args.json or not sys.stdin.isatty():
        return False
    print("forget all this for ever? [yes/no] ", end="", flush=True)
    return sys.stdin.readline().strip() == "yes"


def _forgotten(data: Data, wish: Wish, known: Found, *, as_json: bool) -> int:
    from proxy.store.forgetting import forget, scrub, traces  # noqa: PLC0415

    found = forget(data.db, data.seal, wish, known)
    if not scrub(data.db):
        raise StoreError(
            "forgotten, but another program kept reading, so that old pages may still lie in goalkeeper.db-wal: "
            "run the same command again, or once more when the proxy has stopped"
        )
    left = traces(data.settings.data, wish.pattern) if wish.pattern is not None else []
    if as_json:
        print_json(_as_fields(found) | {"done": True, "traces": left})
    else:
        for file in left:
            print(f"still there, in names or ids that are kept: {line(file)}")
        print(
            "forgotten" if left or wish.pattern is None else "forgotten; no file of the data folder holds it any more"
        )
    return 1 if left else 0


def _tell(found: Found) -> None:
    if found.nothing:
        print("nothing of it is stored")
        return
    if found.sessions:
        count = f"{len(found.sessions)} sessions with {found.messages} messages and {found.receipts} receipts"
        print(f"{count}: {', '.join(line(one) for one in found.sessions)}")
    if found.facts:
        print(f"{len(found.facts)} facts with their history: {', '.join(found.facts)}")
    for table, rows in found.redacted.items():
        print(f"words taken out of {len(rows)} rows of {line(table)}")


def _as_fields(found: Found) -> dict[str, object]:
    return {
        "sessions": found.sessions,
        "facts": found.facts,
        "messages": found.messages,
        "receipts": found.receipts,
        "redacted": {table: len(rows) for table, rows in found.redacted.items()},
    }
