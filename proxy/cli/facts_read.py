"""`goalkeeper facts list|search|show|export`: reading facts."""

from __future__ import annotations

import argparse
import json
import sqlite3

from proxy.cli.data import open_data
from proxy.cli.main import printable
from proxy.cli.output import Commands, add_json_flag, print_json, print_one, print_table
from proxy.store import queries

DOING = ("list", "search", "show", "export")
_FILTERS = ("project", "session", "kind", "status", "text")
_COLUMNS = ("id", "kind", "status", "session", "turn", "text")


def configure(doing: Commands) -> None:
    """Adds list, search, show and export."""
    listing = doing.add_parser("list", help="list facts, oldest first")
    export = doing.add_parser("export", help="print facts for other programs")
    for command in (listing, export):
        command.add_argument("--project", help="only this project")
        command.add_argument("--session", help="only this session (id, beginning of one, or last)")
        command.add_argument("--kind", help="goal, correction, constraint, preference, decision, commitment or fact")
        command.add_argument("--status", help="active, closed, superseded, retracted or expired")
        command.add_argument("--text", help="only facts with these words")
    formats = ("jsonl", "json", "markdown")
    export.add_argument("--format", choices=formats, default="jsonl", help="default jsonl")
    search = doing.add_parser("search", help="find facts by their words, best first")
    search.add_argument("query", nargs="+", help='words, by their beginnings; "several words" as they stand')
    search.add_argument("--project", default="", help="only this project")
    search.add_argument("--limit", type=int, default=50, help="at most so many (default 50)")
    show = doing.add_parser("show", help="show one fact with its history")
    show.add_argument("id", help="id, beginning of one, or last")
    for command in (listing, search, show):
        add_json_flag(command)


def run(args: argparse.Namespace) -> int:
    """Runs one of them."""
    db = open_data(args).db
    if args.doing == "show":
        print_one(queries.fact(db, args.id), as_json=args.json)
        return 0
    if args.doing == "export":
        _export(_matching(db, args)["facts"], args.format)
        return 0
    found = _found(db, args) if args.doing == "search" else _matching(db, args)
    if args.json:
        print_json(found)
    else:
        print_table(_COLUMNS, found["facts"], "no facts")
    return 0


def _found(db: sqlite3.Connection, args: argparse.Namespace) -> dict[str, list[queries.Row]]:
    # the shell has taken the quotes off what was meant as one phrase
    words = " ".join(f'"{part}"' if " " in part and len(args.query) > 1 else part for part in args.query)
    return queries.found_facts(db, words, project=args.project, limit=max(args.limit, 1))


def _matching(db: sqlite3.Connection, args: argparse.Namespace) -> dict[str, list[queries.Row]]:
    query = {name: getattr(args, name) for name in _FILTERS if getattr(args, name)}
    if "session" in query:
        query["session"] = queries.resolve(db, "sessions", query["session"])
    return queries.facts(db, query)


def _export(facts: list[queries.Row], how: str) -> None:
    if how == "json":
        print_json(facts)
    elif how == "markdown":
        _print_pages(facts)
    else:
        for fact in facts:
            print(json.dumps(fact))


def _print_pages(facts: list[queries.Row]) -> None:
    from proxy.facts.markdown import page  # noqa: PLC0415 (only here)

    projects = dict.fromkeys(fact["project"] for fact in facts)
    pages = [
        page(one, [fact | {"supersedes": fact["all_superseded"]} for fact in facts if fact["project"] == one])
        for one in projects
    ]
    print(printable("\n".join(pages)), end="")
