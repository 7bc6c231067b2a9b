"""`goalkeeper check`: settings, pin rules with their examples, and client profiles, before anything runs on them."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from proxy.cli import running
from proxy.cli.main import settings_of, without_secrets
from proxy.cli.output import add_json_flag, line, print_json
from proxy.clients import load_profiles
from proxy.errors import BadRequest, ConfigError
from proxy.pins.check import failures
from proxy.pins.rules import RuleSet, read_rules
from proxy.pins.source import Problem, read_yaml
from proxy.settings.loading import load_settings, packaged_folder
from proxy.settings.model import Settings

_PLACED = re.compile(r"(?P<place>[^\n]*?:\d+(?::\d+)?): (?P<rest>.*)", re.DOTALL)
_PLACE = re.compile(r"(?P<file>.*?)(?::(?P<line>\d+))?(?::(?P<column>\d+))?", re.DOTALL)

T = TypeVar("T")


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `check`."""
    what = "rule or settings files to check beside those in force"
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help=what)
    parser.add_argument("--running", action="store_true", help="ask the running proxy what it uses")
    parser.add_argument("--url", help="where it runs (default: server.host and server.port of the settings)")
    add_json_flag(parser)


def run(args: argparse.Namespace) -> int:
    """Checks everything and prints a line for each problem; 0 without any, 1 with some."""
    if args.running or args.url:
        return running.report(settings_of(args), args.url, as_json=args.json)
    for file in args.files:
        if not file.is_file():
            raise BadRequest(f"{file}: there is no such file")
    settings_files = [file for file in args.files if _holds_settings(file)]
    problems: list[Problem] = []
    settings = _tried(lambda: settings_of(args), problems) or load_settings()
    for file in settings_files:
        _tried(lambda file=file: load_settings([file], os.environ), problems)  # type: ignore[misc]
    extra = [file for file in args.files if file not in settings_files]
    rules = _rules(settings, extra, problems)
    _tried(lambda: load_profiles([packaged_folder() / "clients", *settings.clients.folders]), problems)
    _report(problems, rules, as_json=args.json)
    return 1 if problems else 0


def _tried(load: Callable[[], T], problems: list[Problem]) -> T | None:
    try:
        return load()
    except ConfigError as error:
        for text in without_secrets(str(error)).split("\n"):
            placed = _PLACED.fullmatch(text)
            problems.append(Problem(placed["place"], "", placed["rest"]) if placed else Problem("", "", text))
        return None


def _holds_settings(file: Path) -> bool:
    """Tells a settings file from a rule file by its top-level keys."""
    value = read_yaml(file).value
    return isinstance(value, dict) and "rules" not in value and bool(set(value) & set(Settings.model_fields))


def _rules(settings: Settings, extra: Sequence[Path], problems: list[Problem]) -> RuleSet:
    """Reads the rules in force and those to check as one set: whether a rule decides depends on all others."""
    known = {file.resolve() for file in settings.pins.files}
    files = [*settings.pins.files, *(file for file in extra if file.resolve() not in known)]
    rules, wrong = read_rules(files, settings.pins.rules, marker=settings.pins.marker)
    problems += wrong
    problems += failures(rules)
    return rules


def _report(problems: Sequence[Problem], rules: RuleSet, *, as_json: bool) -> None:
    examples = sum(len(rule.match) + len(rule.no_match) for rule in rules.rules)
    if as_json:
        told = [_as_fields(problem) for problem in problems]
        print_json({"ok": not problems, "rules": len(rules.rules), "examples": examples, "problems": told})
        return
    for problem in problems:
        print(line(str(problem)))
    if not problems:
        print(f"all well: {len(rules.rules)} rules, {examples} examples, settings and client profiles")


def _as_fields(problem: Problem) -> dict[str, object]:
    place = _PLACE.fullmatch(problem.place)
    found = place.groupdict() if place else {}
    return {
        "file": found.get("file") or "",
        "line": int(found.get("line") or 0),
        "column": int(found.get("column") or 0),
        "key": problem.key,
        "message": problem.message,
        "suggestion": problem.suggestion,
    }
