"""`goalkeeper facts add|edit|retract`: changing facts by hand; each change is an event in their history."""

from __future__ import annotations

import argparse
from typing import Any

from proxy.cli.data import Data, open_data
from proxy.cli.output import Commands, add_json_flag, print_json
from proxy.errors import BadRequest
from proxy.store import queries

DOING = ("add", "edit", "retract")
KINDS = ("goal", "correction", "constraint", "preference", "decision", "commitment", "fact")
_SCOPES = ("session", "project", "once")
_STATUSES = ("active", "closed", "superseded", "expired")
_WORDS = ("title", "reason", "consequence", "revisit")


def configure(doing: Commands) -> None:
    """Adds add, edit and retract."""
    add = doing.add_parser("add", help="add a fact that was said elsewhere")
    add.add_argument("text")
    add.add_argument("--kind", choices=KINDS, default="decision", help="default decision")
    add.add_argument("--session", help="session that it belongs to (id, beginning of one, or last)")
    add.add_argument("--supersedes", action="append", default=[], metavar="ID", help="fact that it replaces")
    add.add_argument("--tenant", default="", help="whose it is, where several use the folder")
    add.add_argument("--who", default="user", help="who said it (default user)")
    edit = doing.add_parser("edit", help="change what is given; the quote stays as it was said")
    edit.add_argument("id", help="id, beginning of one, or last")
    edit.add_argument("--text", help="other words for the fact")
    edit.add_argument("--kind", choices=KINDS)
    edit.add_argument("--status", choices=_STATUSES)
    edit.add_argument("--superseded-by", metavar="ID", help="fact that replaces it")
    for command in (add, edit):
        command.add_argument("--project", help="name of the project")
        command.add_argument("--scope", choices=_SCOPES)
        command.add_argument("--title", help="a few words, as a heading")
        command.add_argument("--reason", help="why it is so")
        command.add_argument("--rejected", action="append", metavar="WORDS", help="what was turned down (repeatable)")
        command.add_argument("--consequence", help="what follows from it")
        command.add_argument("--revisit", metavar="WHEN", help="when to look at it again")
    retract = doing.add_parser("retract", help="it was wrong: it holds no longer, nor does the pin it came from")
    retract.add_argument("id", help="id, beginning of one, or last")
    for command in (add, edit, retract):
        add_json_flag(command)


def run(args: argparse.Namespace) -> int:
    """Runs one of them."""
    data = open_data(args)
    changed = {"add": _add, "edit": _edit, "retract": _retract}[args.doing](data, args)
    if args.json:
        print_json(queries.fact(data.db, changed))
    else:
        print(f"{ {'add': 'added', 'edit': 'changed', 'retract': 'retracted'}[args.doing] }: {changed}")
    return 0


def _add(data: Data, args: argparse.Namespace) -> str:
    from proxy.facts import Fact  # noqa: PLC0415 (what changes the store is loaded by those who do)
    from proxy.store.fact_edits import changing, tenant_of  # noqa: PLC0415

    if not args.text.strip():
        raise BadRequest("an empty text is no fact")
    session = queries.resolve(data.db, "sessions", args.session) if args.session else ""
    project = args.project or (queries.session(data.db, session)["project"] if session else "")
    replaced = tuple(queries.resolve(data.db, "facts", name) for name in args.supersedes)
    fact = Fact(
        pin="", kind=args.kind, status="active", scope=args.scope or "project", text=args.text, quote="", turn=0,
        rule="by hand", project=project, session=session, branch="", observed_at="", source={}, supersedes=replaced,
        who=args.who, rejected=tuple(args.rejected or ()), **_words(args),
    )  # fmt: skip
    with changing(data.db, data.seal) as desk:
        added = desk.add(tenant_of(data.db, args.tenant, session), fact)
        for name in replaced:
            desk.change(desk.fact(name), {"status": "superseded", "superseded_by": added.id}, "superseded")
    return added.id


def _edit(data: Data, args: argparse.Namespace) -> str:
    from proxy.store.fact_edits import changing  # noqa: PLC0415

    identity = queries.resolve(data.db, "facts", args.id)
    fields: dict[str, Any] = _words(args)
    fields |= {name: getattr(args, name) for name in ("text", "kind", "scope", "status", "project")}
    fields = {name: value for name, value in fields.items() if value is not None}
    if args.rejected is not None:
        fields["rejected"] = tuple(args.rejected)
    if args.superseded_by:
        newer = queries.resolve(data.db, "facts", args.superseded_by)
        if newer == identity:
            raise BadRequest("--superseded-by: a fact can't replace itself")
        fields |= {"status": "superseded", "superseded_by": newer}
    if not fields:
        raise BadRequest("nothing to change: give --text, --kind, --reason or another of the flags")
    if not fields.get("text", "x").strip():
        raise BadRequest("--text: an empty text is no fact")
    with changing(data.db, data.seal) as desk:
        desk.change(desk.fact(identity), fields, "edited")
    return identity


def _retract(data: Data, args: argparse.Namespace) -> str:
    from proxy.store.fact_edits import changing  # noqa: PLC0415

    identity = queries.resolve(data.db, "facts", args.id)
    with changing(data.db, data.seal) as desk:
        fact = desk.fact(identity)
        if fact.status == "active":
            desk.end_pin(fact)
        desk.change(fact, {"status": "retracted"}, "retracted")
    return identity


def _words(args: argparse.Namespace) -> dict[str, Any]:
    return {name: getattr(args, name) for name in _WORDS if getattr(args, name) is not None}
