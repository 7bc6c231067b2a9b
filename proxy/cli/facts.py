"""`goalkeeper facts`: what people said that binds, with source and history."""

from __future__ import annotations

import argparse
import json
import sqlite3

from proxy.cli.data import open_data
from proxy.cli.output import add_json_flag, print_json, print_one, print_table
from proxy.store import queries

_FILTERS = ("project", "session", "kind", "status", "text")


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds list, show and export."""
    doing = parser.add_subparsers(dest="doing", required=True, metavar="list|show|export")
    listing = doing.add_parser("list", help="list facts, oldest first")
    export = doing.add_parser("export", help="print facts for other programs")
    for command in (listing, export):
        command.add_argument("--project", help="only this project")
        command.add_argument("--session", help="only this session (id, beginning of one, or last)")
        command.add_argument("--kind", help="goal, correction, constraint, preference, decision, commitment or fact")
        command.add_argument("--status", help="active, closed, superseded, retracted or expired")
        command.add_argument("--text", help="only facts with these words")
    export.add_argument("--format", choices=("jsonl", "json"), default="jsonl", help="default jsonl")
    show = doing.add_parser("show", help="show one fact with its history")
    show.add_argument("id", help="id, beginning of one, or last")
    for command in (listing, show):
        add_json_flag(command)


def run(args: argparse.Namespace) -> int:
    """Runs one of them."""
    db = open_data(args).db
    if args.doing == "show":
        fact = queries.fact(db, args.id)
        print_one(fact, as_json=args.json)
        return 0
    found = _matching(db, args)
    if args.doing == "export":
        _export(found["facts"], args.format)
    elif args.json:
        print_json(found)
    else:
        print_table(("id", "kind", "status", "session", "turn", "text"), found["facts"], "no facts")
    return 0


def _matching(db: sqlite3.Connection, args: argparse.Namespace) -> dict[str, list[queries.Row]]:
    query = {name: getattr(args, name) for name in _FILTERS if getattr(args, name)}
    if "session" in query:
        query["session"] = queries.resolve(db, "sessions", query["session"])
    return queries.facts(db, query)


def _export(facts: list[queries.Row], how: str) -> None:
    if how == "json":
        print_json(facts)
        return
    for fact in facts:
        print(json.dumps(fact))
