"""`goalkeeper plan`: what the proxy would make of a body, without one running and without writing anything."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from proxy.cli.data import open_data
from proxy.cli.main import printable, settings_of
from proxy.cli.output import add_json_flag, line, print_json, print_table
from proxy.errors import BadRequest, StoreError
from proxy.store import queries

_FAILED = ("failed_open", "invalid_rewrite")


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the body, and what the request would come with."""
    parser.add_argument("file", nargs="?", metavar="FILE", default="-", help="a request body (default: standard input)")
    parser.add_argument("--dialect", choices=("chat", "messages", "responses"), help="default: told by the body's keys")
    parser.add_argument("--path", help="path of the request, such as /v1/messages")
    parser.add_argument("--budget", type=int, metavar="TOKENS", help="most tokens of the forwarded body")
    parser.add_argument("--header", action="append", default=[], metavar="'NAME: VALUE'", help="repeatable")
    parser.add_argument("--session", help="plan it as this session's next request (id, beginning of one, or last)")
    parser.add_argument("--body", action="store_true", help="print the body that would be forwarded, nothing else")
    add_json_flag(parser)


def run(args: argparse.Namespace) -> int:
    """Plans it; 1 when something fails inside, so that the proxy would send the client's own bytes."""
    from proxy.cli.planning import Asked, dialect_of, planned, read_headers  # noqa: PLC0415  imports the whole proxy

    body = _read(args.file)
    if args.budget is not None and args.budget <= 0:
        raise BadRequest("--budget must be a positive number of tokens")
    dialect, path = dialect_of(body, args.dialect, args.path)
    budget = (("x-goalkeeper-budget", str(args.budget)),) if args.budget else ()
    store, session = _store(args)
    try:
        passage, found = planned(
            settings_of(args), store, Asked(body, dialect, path, (*read_headers(args.header), *budget))
        )
    finally:
        store.close()
    if session and found["session"] != session:
        print(f"note: by its content this body doesn't go on from session {session}", file=sys.stderr)
    if args.body:
        _print_body(passage.body)
    elif args.json:
        print_json(found)
    else:
        _print(found)
    return 1 if any(flag in _FAILED for flag in passage.flags) else 0


def _read(name: str) -> bytes:
    if name == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise BadRequest(f"{name}: can't be read: {error.strerror or error}") from error


def _store(args: argparse.Namespace) -> tuple[Any, str]:
    """Gives a store to read from, and the session that is meant ("" for an empty store)."""
    from proxy.store.aside import Aside  # noqa: PLC0415  as above

    if not args.session:
        return Aside.empty(), ""
    data = open_data(args)
    session = queries.resolve(data.db, "sessions", args.session)
    row = data.db.execute("SELECT tenant, namespace FROM sessions WHERE id = ?", (session,)).fetchone()
    if row is None:
        raise StoreError(f"session {session} is gone")
    return Aside(data.db, data.seal, *row), session


def _print_body(body: bytes) -> None:
    if sys.stdout.isatty():
        print(printable(body.decode(errors="replace")))
    else:
        sys.stdout.buffer.write(body)


def _print(found: dict[str, Any]) -> None:
    session = found["session"] or "(a new one)"
    print(
        line(f"{found['dialect']}, client {found['client'] or '?'}, session {session}, {found['relation'] or 'unread'}")
    )
    what = (found["kind"] or "as before") if found["rewritten"] else "the client's own bytes"
    print(f"budget {found['budget'] or 'unknown'}: {found['tokens_in']} → {found['tokens_out']} tokens, {what}")
    for name in ("flags", "notes"):
        for told in found[name]:
            print(line(f"{name[:-1]}: {told}"))
    if "pinned" not in found:
        print("nothing is planned for such a request")
        return
    print(f"\npinned: {len(found['pinned'])}, restored: {len(found['restored'])}")
    print_table(("id", "kind", "turn", "where", "rule", "text"), found["pinned"], "nothing the user said binds")
    print(f"\nhistory: {len(found['history'])}")
    print_table(("turn", "label", "text"), found["history"], "all that the user said binds")
    print(f"\ndigested: {len(found['digested'])} blocks")
    print_table(
        ("id", "reason", "new", "turns", "tokens", "pin_tokens", "log_tokens"), found["digested"], "none stands in it"
    )
    for name in ("elided", "kept"):
        messages = found[name]
        print(f"\n{name}: {len(messages)} messages, {sum(message['tokens'] for message in messages)} tokens")
        if messages:
            print_table(("place", "role", "tokens", "text"), messages, "")
    print(f"\naround them (tools, system text outside the messages): {found['around']} tokens")
