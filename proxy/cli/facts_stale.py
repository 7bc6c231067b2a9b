"""`goalkeeper facts stale`: facts that a checkout has gone beyond."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from proxy.cli.data import open_data
from proxy.cli.output import Commands, add_json_flag, print_json, print_table
from proxy.store import queries

if TYPE_CHECKING:
    from proxy.cli.checkout import Checkout

DOING = ("stale",)
_SHOWN = 5  # files named for one fact


def configure(doing: Commands) -> None:
    """Adds stale."""
    stale = doing.add_parser("stale", help="list active facts whose files or commit have changed since in a checkout")
    stale.add_argument("checkout", nargs="?", default=".", help="folder in a git checkout (default: here)")
    stale.add_argument("--project", help="facts of this project, wherever they were said")
    add_json_flag(stale)


def run(args: argparse.Namespace) -> int:
    """Lists them with the reason."""
    from proxy.cli.checkout import Checkout  # noqa: PLC0415 (subprocess costs time)

    db = open_data(args).db
    checkout = Checkout.at(Path(args.checkout))
    facts = [one for one in queries.facts(db, {"status": "active"})["facts"] if one["kind"] != "goal"]
    mine = [one for one in facts if (one["project"] == args.project if args.project else _belongs(one, checkout))]
    found = [{**_short(one), **why} for one in mine if (why := _why(one, checkout))]
    if args.json:
        print_json({"checkout": str(checkout.top), "looked_at": len(mine), "facts": found})
    else:
        empty = f"none of {len(mine)} facts of this checkout"
        print_table(("id", "kind", "since", "why", "text"), found, empty)
    return 0


def _belongs(fact: queries.Row, checkout: Checkout) -> bool:
    """Whether a fact was said about this checkout: by its folder, its repository or its commit."""
    source = fact["source"]
    top = str(checkout.top)
    for place in (fact["project"], source.get("cwd", "")):
        if place == top or place.startswith(f"{top}/"):
            return True
    repository = source.get("pull", "").partition("#")[0] or fact["project"]
    origin = checkout.origin()
    if "/" in repository and origin.endswith((f"/{repository}", f":{repository}")):
        return True
    return checkout.has(source.get("git_commit", ""))


def _why(fact: queries.Row, checkout: Checkout) -> queries.Row:
    from datetime import UTC, datetime  # noqa: PLC0415

    from proxy.facts.staleness import due, matching, named_in  # noqa: PLC0415

    commit = fact["source"].get("git_commit", "")
    known = checkout.has(commit)
    since = commit if known else checkout.before(fact["observed_at"])
    names = named_in(fact)
    changed = matching(names, checkout.changed(since)) if names and since else []
    date = due(fact, datetime.now(UTC).date().isoformat())
    if changed:
        told = ", ".join(changed[:_SHOWN]) + (f" and {len(changed) - _SHOWN} more" if len(changed) > _SHOWN else "")
        return {"since": since[:12], "why": f"changed: {told}", "files": changed}
    if date:
        return {"since": since[:12], "why": f"to be looked at again since {date}", "files": []}
    if not known or matching(names, checkout.files()):
        return {}
    behind = checkout.behind(commit)
    if behind < 0:
        return {"since": since[:12], "why": "its commit is not in the history of HEAD", "files": []}
    return {"since": since[:12], "why": f"HEAD is {behind} commits further", "files": []} if behind else {}


def _short(fact: queries.Row) -> queries.Row:
    return {name: fact[name] for name in ("id", "kind", "text", "project", "observed_at")}
