"""`goalkeeper facts import`: facts from JSON lines, and decisions from exports of pull-request reviews."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from proxy.cli.data import Data, open_data
from proxy.cli.output import Commands, add_json_flag, line, print_json
from proxy.errors import BadRequest

if TYPE_CHECKING:
    from proxy.facts import Fact
    from proxy.facts.jsontext import Broken

DOING = ("import",)
_Found = Sequence[tuple[int, "Fact"]]


def configure(doing: Commands) -> None:
    """Adds import."""
    take = doing.add_parser("import", help="take facts from JSON lines, or decisions from pull-request reviews")
    take.add_argument("file", help="a file, or - for the standard input")
    take.add_argument("--format", choices=("auto", "jsonl", "reviews"), default="auto", help="default: by its content")
    take.add_argument("--project", default="", help="project of what names none; reviews: instead of the repository")
    take.add_argument("--tenant", default="", help="whose they are, where several use the folder")
    take.add_argument("--skip-broken", action="store_true", help="take the rest when lines are broken")
    add_json_flag(take)


def run(args: argparse.Namespace) -> int:
    """Takes all of it, or nothing when a line is broken; says what was taken, known already and left out."""
    data = open_data(args)
    text, name = _text(args.file)
    facts, broken, passed = _read(data, args, text)
    for one in broken:
        print(line(f"{name}:{one.line}: {one.reason}"), file=sys.stderr)
    if broken and not args.skip_broken:
        _tell(args, 0, 0, passed, broken)
        return 1
    added, known = _stored(data, args, facts)
    _tell(args, added, known, passed, broken)
    return 1 if broken else 0


def _text(file: str) -> tuple[str, str]:
    try:
        raw = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return raw.decode("utf-8"), "stdin" if file == "-" else file
    except OSError as error:
        raise BadRequest(f"{file}: can't be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        number = raw[: error.start].count(b"\n") + 1
        raise BadRequest(f"{file}:{number}: not UTF-8: {error.reason}") from error


def _read(data: Data, args: argparse.Namespace, text: str) -> tuple[_Found, Sequence[Broken], int]:
    from proxy.facts.importing import facts_in  # noqa: PLC0415 (what imports needs is loaded by it)
    from proxy.facts.jsontext import lines_of, values_of  # noqa: PLC0415
    from proxy.facts.reviews import decisions_in  # noqa: PLC0415

    kind = _kind(text) if args.format == "auto" else args.format
    if kind == "reviews":
        export = decisions_in(values_of(text), args.project, _judge(data))
        return export.facts, export.broken, export.passed
    values = values_of(text) if text.lstrip("\ufeff \r\n\t").startswith("[") else lines_of(text)
    return (*facts_in(values, args.project), 0)


def _kind(text: str) -> str:
    """Tells facts from reviews by the first value that can be read."""
    from proxy.facts.jsontext import Broken, lines_of, values_of  # noqa: PLC0415

    readers = (values_of, lines_of)
    value = next((one for reader in readers for _, one in reader(text) if not isinstance(one, Broken)), None)
    return (
        "jsonl" if value is None or (isinstance(value, dict) and "text" in value and "body" not in value) else "reviews"
    )


def _judge(data: Data) -> Callable[[str], bool]:
    from proxy.pins.match import judge  # noqa: PLC0415
    from proxy.pins.rules import load_rules  # noqa: PLC0415

    own = data.settings.pins
    rules = load_rules(own.files, own.rules, marker=own.marker)
    return lambda words: judge(words, first=False, asked="", rules=rules).kind is not None


def _stored(data: Data, args: argparse.Namespace, facts: _Found) -> tuple[int, int]:
    """Writes what isn't known yet, all in one transaction; gives how many were, and how many weren't."""
    import msgspec  # noqa: PLC0415

    from proxy.store.fact_edits import by_hand_pin, changing, tenant_of  # noqa: PLC0415

    tenant = tenant_of(data.db, args.tenant)
    added = 0
    with changing(data.db, data.seal) as desk:
        for _, fact in facts:
            seed = f"{tenant}|{fact.project}|{fact.kind}|{fact.text}|{fact.source.get('url', '')}"
            named = fact if fact.pin else msgspec.structs.replace(fact, pin=by_hand_pin(seed))
            if not desk.knows(named):
                desk.add(tenant, named, "imported")
                added += 1
    return added, len(facts) - added


def _tell(args: argparse.Namespace, added: int, known: int, passed: int, broken: Sequence[Broken]) -> None:
    if args.json:
        lines = [{"line": one.line, "reason": one.reason} for one in broken]
        print_json({"imported": added, "known": known, "passed": passed, "broken": lines})
        return
    if broken and not args.skip_broken:
        print(f"nothing was imported: {len(broken)} broken; mend them, or take the rest with --skip-broken")
        return
    told = [f"imported {added}", f"known already {known}"]
    told += [f"decided nothing {passed}"] if passed else []
    told += [f"left out as broken {len(broken)}"] if broken else []
    print(", ".join(told))
