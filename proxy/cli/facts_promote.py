"""`goalkeeper facts promote`: facts of sessions become knowledge of their project, here and in its repository."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from proxy.cli.data import Data, open_data
from proxy.cli.main import printable
from proxy.cli.output import Commands, add_json_flag, print_json
from proxy.errors import BadRequest
from proxy.store import queries

DOING = ("promote",)
_WORDS = ("text", "title", "reason", "consequence", "revisit")
_LEFT_ALONE = ("edited by hand", "title taken")


def configure(doing: Commands) -> None:
    """Adds promote."""
    promote = doing.add_parser("promote", help="make facts knowledge of their project; --to writes them into its files")
    promote.add_argument("ids", nargs="+", metavar="ID", help="id, beginning of one, or last")
    promote.add_argument("--to", nargs=2, metavar=("context|agents", "DIR"), help="files of the project in this folder")
    promote.add_argument("--write", action="store_true", help="do it; without, only show what would be written")
    promote.add_argument("--topic", help="file in context/ (default: decisions or constraints)")
    promote.add_argument("--text", help="what holds, in other words than the person's")
    promote.add_argument("--title", help="a few words, as a heading")
    promote.add_argument("--reason", help="why it is so")
    promote.add_argument("--rejected", action="append", metavar="WORDS", help="what was turned down (repeatable)")
    promote.add_argument("--consequence", help="what follows from it")
    promote.add_argument("--revisit", metavar="WHEN", help="when to look at it again")
    add_json_flag(promote)


@dataclass(slots=True)
class Changes:
    """The files as they would be, and what becomes of each fact."""

    before: dict[Path, str] = field(default_factory=dict)
    after: dict[Path, str] = field(default_factory=dict)
    outcomes: dict[str, str] = field(default_factory=dict)

    def read(self, file: Path) -> str:
        """Gives a file's text as it would be by now, "" for one that isn't there. Raises BadRequest."""
        if file not in self.after:
            self.before[file] = self.after[file] = _read(file)
        return self.after[file]


def run(args: argparse.Namespace) -> int:
    """Shows or does it; 1 when an entry was edited by hand and is left alone."""
    data = open_data(args)
    given = {name: value for name in _WORDS if (value := getattr(args, name)) is not None}
    if args.rejected is not None:
        given["rejected"] = args.rejected
    if given and len(args.ids) > 1:
        raise BadRequest("--text, --title and the like are for one fact: promote them one by one")
    facts = [queries.fact(data.db, name) | given for name in dict.fromkeys(args.ids)]
    changes = _changes(data, args, facts)
    for fact in facts:
        _object(fact, changes, written=args.to is not None)
    if args.write:
        _do(data, facts, given, changes)
    _tell(args, changes)
    return 1 if any(one in _LEFT_ALONE for one in changes.outcomes.values()) else 0


def _object(fact: queries.Row, changes: Changes, *, written: bool) -> None:
    from proxy.facts.knowledge import holds, objection  # noqa: PLC0415 (only what promotes needs it)

    why = objection(fact, written=written)
    known = any(holds(text, fact["id"]) for text in changes.before.values())
    if fact["status"] != "active" and not known:
        why = f"it is {fact['status']}: only what holds can be promoted"
    if why:
        raise BadRequest(f"fact {fact['id']} can't be promoted: {why}")


def _changes(data: Data, args: argparse.Namespace, facts: list[queries.Row]) -> Changes:
    changes = Changes()
    if args.to is None:
        changes.outcomes = {one["id"]: "unchanged" if one["promoted"] else "promoted" for one in facts}
        return changes
    kind, folder = args.to[0], Path(args.to[1])
    if kind not in ("context", "agents"):
        raise BadRequest(f"--to: must be context or agents and a folder (it is {kind!r})")
    if not folder.is_dir():
        raise BadRequest(f"--to {kind}: there is no folder {folder}")
    if kind == "agents":
        _into_agents(changes, folder, facts)
    else:
        _into_context(data, changes, folder, facts, args.topic)
    return changes


def _into_agents(changes: Changes, folder: Path, facts: list[queries.Row]) -> None:
    from proxy.facts.agents_md import with_fact  # noqa: PLC0415

    file = folder / "AGENTS.md"
    for fact in facts:
        try:
            changes.after[file], changes.outcomes[fact["id"]] = with_fact(changes.read(file), fact)
        except BadRequest as error:
            raise BadRequest(f"{file}: {error}") from error


def _into_context(data: Data, changes: Changes, folder: Path, facts: list[queries.Row], topic: str | None) -> None:
    from proxy.facts.agents_md import settings_in  # noqa: PLC0415
    from proxy.facts.knowledge import README, TYPES, entry_of, indexed, placed  # noqa: PLC0415
    from proxy.store.origin import origin  # noqa: PLC0415

    if folder.name == "context" and (folder / "index.md").is_file():
        folder = folder.resolve().parent
    told = settings_in(_read(folder / "AGENTS.md"))
    context = _context_folder(folder, told)
    reference = told.get("source-reference", "always")
    for fact in facts:
        name = _slug(topic) if topic else f"{TYPES.get(fact['kind'], 'decision')}s"
        heading, file = name.replace("-", " ").capitalize(), context / f"{name}.md"
        receipt = origin(data.db, fact["id"])["receipts"]["first"] if reference == "always" else ""
        entry = entry_of(fact, source=reference != "never", receipt=receipt)
        changes.after[file], changes.outcomes[fact["id"]] = placed(changes.read(file), heading, entry)
        index, readme = context / "index.md", context / "README.md"
        changes.after[index] = indexed(changes.read(index), file.name, heading)
        changes.after[readme] = changes.read(readme) or README


def _context_folder(folder: Path, told: Mapping[str, str]) -> Path:
    """Gives the folder that the project's settings name. Raises BadRequest for one outside, or a newer format."""
    from proxy.facts.knowledge import SCHEMA  # noqa: PLC0415

    schema = tuple(int(part) for part in re.findall(r"\d+", told.get("context-schema", ""))[:2])
    if schema > SCHEMA:
        raise BadRequest(f"{folder / 'AGENTS.md'}: context-schema {told['context-schema']} is newer than this writer")
    named = told.get("context-folder") or "context"
    context = folder / named
    if not context.resolve().is_relative_to(folder.resolve()):
        raise BadRequest(f"{folder / 'AGENTS.md'}: the context folder {named!r} lies outside the project")
    return context


def _slug(topic: str) -> str:
    slug = re.sub(r"[^a-z0-9]+", "-", topic.lower().removesuffix(".md")).strip("-")
    if slug in ("", "index", "readme"):
        raise BadRequest(f"--topic: {topic!r} can't be the name of a topic file")
    return slug


def _read(file: Path) -> str:
    try:
        return file.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise BadRequest(f"{file}: can't be read: {error}") from error


def _do(data: Data, facts: list[queries.Row], given: Mapping[str, object], changes: Changes) -> None:
    """Writes the files first: what fails there leaves no fact that says it was promoted."""
    from proxy.store.fact_edits import changing  # noqa: PLC0415

    for file, text in changes.after.items():
        if text != changes.before[file]:
            _write(file, text)
    fields = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
    with changing(data.db, data.seal) as desk:
        for fact in facts:
            if changes.outcomes[fact["id"]] in _LEFT_ALONE:
                continue
            stored = desk.fact(fact["id"])
            since = stored.promoted or desk.at
            desk.change(stored, {**fields, "scope": "project", "promoted": since}, "promoted")


def _write(file: Path, text: str) -> None:
    fresh = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        target = file.resolve() if file.is_symlink() else file
        fresh.write_bytes(text.encode("utf-8", "replace"))
        if target.exists():
            fresh.chmod(target.stat().st_mode & 0o777)
        fresh.replace(target)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        raise BadRequest(f"{file}: can't be written: {error.strerror or error}") from error


def _tell(args: argparse.Namespace, changes: Changes) -> None:
    changed = {file: text for file, text in changes.after.items() if text != changes.before[file]}
    if args.json:
        files = [{"file": str(file), "text": text} for file, text in changed.items()]
        print_json({"written": args.write, "facts": changes.outcomes, "files": files})
        return
    for file, text in changed.items():
        if args.write:
            print(f"written: {printable(str(file))}")
        else:
            print(printable(_difference(file, changes.before[file], text)), end="")
    for identity, outcome in changes.outcomes.items():
        print(f"{identity}: {outcome}" + (", left alone" if outcome in _LEFT_ALONE else ""))
    if not args.write:
        print("nothing is written yet: add --write")


def _difference(file: Path, before: str, after: str) -> str:
    from difflib import unified_diff  # noqa: PLC0415

    lines = unified_diff(before.splitlines(keepends=True), after.splitlines(keepends=True), str(file), str(file))
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)
