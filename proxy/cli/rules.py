"""`goalkeeper rules`: what the pin rules make of words, of a transcript, of labelled sessions."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from proxy.cli.data import open_data
from proxy.cli.labelled import LABELS, Prediction, json_lines, predict, read_sessions
from proxy.cli.main import settings_of
from proxy.cli.output import add_json_flag, line, print_json
from proxy.cli.said import Talk, of_file, of_session, of_words
from proxy.cli.scoring import Score, Tally, held_out, score
from proxy.cli.trying import examples, told
from proxy.clients import Profiles, load_profiles
from proxy.errors import BadRequest
from proxy.pins.rules import RuleSet, load_rules
from proxy.pins.trace import trace
from proxy.settings.loading import packaged_folder
from proxy.settings.model import Settings

_RULE_FILES = (".yaml", ".yml")


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds test, predict and score."""
    doing = parser.add_subparsers(dest="doing", required=True, metavar="test|predict|score")
    test = doing.add_parser("test", help="which rule decides each turn, why, and what came second")
    what = "a rule file, a transcript (JSON or JSONL), a session's id, the beginning of one, or last"
    test.add_argument("target", nargs="?", metavar="FILE|SESSION", help=what)
    test.add_argument(
        "--say", action="append", default=[], metavar="TEXT", help="try this text; several follow on each other"
    )
    test.add_argument("--asked", default="", metavar="TEXT", help="what the assistant asked before the last --say")
    test.add_argument("--client", default="", metavar="NAME", help="client profile that reads a transcript file")
    predicting = doing.add_parser("predict", help="print a prediction for each user turn, one line of JSON each")
    scoring = doing.add_parser("score", help="compare predictions with the labels of sessions")
    for command in (predicting, scoring):
        command.add_argument("sessions", type=Path, metavar="SESSIONS.jsonl", help="one session a line")
    scoring.add_argument("--predictions", type=Path, metavar="FILE", help="score these and not those of the rules")
    scoring.add_argument("--errors", type=int, default=10, metavar="N", help="show the N worst errors (default 10)")
    scoring.add_argument(
        "--held-out", type=int, default=0, metavar="N", help="also score one of N parts by itself, and the rest"
    )
    for command in (test, predicting, scoring):
        command.add_argument("--with", dest="extra", action="append", type=Path, default=[], metavar="RULES.yaml",
                             help="a rule file to try on top of those in force (repeatable)")  # fmt: skip
        add_json_flag(command)


def run(args: argparse.Namespace) -> int:
    """Runs one of them."""
    settings = settings_of(args)
    profiles = load_profiles([packaged_folder() / "clients", *settings.clients.folders])
    run_one = {"test": _test, "predict": _predict, "score": _score}[args.doing]
    return run_one(args, settings, profiles)


def _rules(settings: Settings, extra: Sequence[Path]) -> RuleSet:
    known = {file.resolve() for file in settings.pins.files}
    files = [*settings.pins.files, *(file for file in extra if file.resolve() not in known)]
    return load_rules(files, settings.pins.rules, marker=settings.pins.marker)


def _test(args: argparse.Namespace, settings: Settings, profiles: Profiles) -> int:
    if bool(args.target) == bool(args.say):
        raise BadRequest("give either FILE|SESSION or --say TEXT")
    target = Path(args.target or "")
    if args.target and target.suffix in _RULE_FILES:
        return examples(target, _rules(settings, [*args.extra, target]), as_json=args.json)
    rules = _rules(settings, args.extra)
    talks = _talks(args, profiles)
    tried = [(talk, list(trace(talk.turns, rules, client=talk.client))) for talk in talks]
    if args.json:
        print_json({"talks": [{"name": talk.name, "turns": [told(step) for step in steps]} for talk, steps in tried]})
        return 0
    for talk, steps in tried:
        if talk.name and len(tried) > 1:
            print(line(f"== {talk.name}"))
        for step in steps:
            _print_step(told(step))
    return 0


def _talks(args: argparse.Namespace, profiles: Profiles) -> list[Talk]:
    if args.say:
        # Words to try follow on a goal: by themselves the first ones would be it.
        return [of_words(args.say, args.asked)]
    path = Path(args.target)
    if path.is_file():
        return list(of_file(path, profiles, args.client))
    if path.suffix in (".json", ".jsonl") or "/" in args.target:
        raise BadRequest(f"{args.target}: there is no such file")
    return [of_session(open_data(args), profiles, args.target)]


def _print_step(step: Mapping[str, object]) -> None:
    pinned = "pinned" if step["pin"] else "history"
    print(line(f"turn {step['turn']}: {step['kind']} ({pinned}), {step['why']}"))
    print(line(f"    {step['text']}"))
    if step["second"]:
        print(line(f"    second: {step['second']}"))
    for change in step["changes"]:  # type: ignore[attr-defined]
        print(line(f"    {change}"))


def _predict(args: argparse.Namespace, settings: Settings, profiles: Profiles) -> int:
    """Prints JSON lines with and without --json: this is the format of predictions."""
    rules = _rules(settings, args.extra)
    for session in read_sessions(args.sessions, labelled=False):
        for found in predict(session, rules, profiles):
            print(json.dumps(found.row))
    return 0


def _score(args: argparse.Namespace, settings: Settings, profiles: Profiles) -> int:
    if args.held_out < 0 or args.held_out == 1 or args.errors < 0:
        raise BadRequest("--held-out needs at least 2 parts, --errors no less than 0")
    sessions = read_sessions(args.sessions, labelled=True)
    if args.predictions:
        predicted = _read_predictions(args.predictions)
    else:
        rules = _rules(settings, args.extra)
        predicted = {(one.session, one.turn): one for session in sessions for one in predict(session, rules, profiles)}
    parts = {"all": score(sessions, predicted)}
    if args.held_out:
        apart = [session for session in sessions if held_out(session, args.held_out)]
        rest = [session for session in sessions if not held_out(session, args.held_out)]
        parts |= {"held out": score(apart, predicted), "rest": score(rest, predicted)}
    worst = parts["all"].mistakes[: args.errors]
    if args.json:
        print_json({name: part.row for name, part in parts.items()} | {"errors": [mistake.row for mistake in worst]})
        return 0
    for name, part in parts.items():
        _print_score(name, part)
    for mistake in worst:
        labels = f"{','.join(mistake.wanted) or '-'} → {','.join(mistake.found) or '-'} ({mistake.rule or 'no rule'})"
        print(line(f"{mistake.place}: turn {mistake.turn}: {mistake.kind}: {labels}: {mistake.text[:100]}"))
    return 0


def _print_score(name: str, part: Score) -> None:
    print(f"{name}: {part.sessions} sessions, {part.turns} user turns")
    rows = {"pins": part.pins, "goal+correction pinned": part.core, "directive": part.directive}
    rows |= {"supersedes": part.supersedes}
    if name == "all":
        rows |= {f"  {label}": tally for label, tally in part.labels.items()}
        rows |= {f"  language {key}": tally for key, tally in sorted(part.languages.items())}
        rows |= {f"  client {key}": tally for key, tally in sorted(part.clients.items())}
    for title, tally in rows.items():
        print(line(_figures(title, tally)))


def _figures(title: str, tally: Tally) -> str:
    rates = (("P", tally.precision), ("R", tally.recall), ("F1", tally.f1))
    told_rates = "  ".join(f"{name} {'    -' if rate is None else format(rate, '.3f')}" for name, rate in rates)
    return f"  {title:<24} {told_rates}   right {tally.right}, false {tally.false}, missed {tally.missed}"


def _read_predictions(path: Path) -> dict[tuple[str, int], Prediction]:
    found = {}
    for place, value in json_lines(path):
        if not isinstance(value, Mapping) or not isinstance(value.get("session_id"), str):
            raise BadRequest(f"{place}: session_id: a prediction is an object with a text under this key")
        turn, labels, supersedes = value.get("turn_index"), value.get("labels", []), value.get("supersedes", [])
        if not isinstance(turn, int) or not isinstance(labels, list) or not isinstance(supersedes, list):
            raise BadRequest(f"{place}: turn_index must be a number, labels and supersedes must be lists")
        if not set(labels) <= set(LABELS):
            raise BadRequest(f"{place}: labels: must be out of: {', '.join(LABELS)}")
        session = value["session_id"]
        found[session, turn] = Prediction(session, turn, tuple(labels), bool(value.get("pin")), tuple(supersedes))
    return found
