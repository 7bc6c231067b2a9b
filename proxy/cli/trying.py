"""How a judged turn is told to people and programs, and the examples of a rule file, tried one by one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from proxy.cli.output import line, print_json
from proxy.pins.check import failures
from proxy.pins.match import judge
from proxy.pins.rule import Rule
from proxy.pins.rules import RuleSet
from proxy.pins.source import Problem
from proxy.pins.trace import Change, Reason, Step

_WIDEST = 120  # characters of words that are shown


def told(step: Step) -> dict[str, object]:
    """Gives one judged turn: what decided it, why, what came second, what it did to older pins."""
    verdict, reason = step.verdict, step.reason
    return {
        "turn": step.turn.number,
        "kind": verdict.kind or (verdict.labels[0] if verdict.labels else "step"),
        "pin": verdict.kind is not None,
        "scope": verdict.scope,
        "labels": list(verdict.labels),
        "rule": verdict.rule,
        "why": _why(reason) if reason else f"by structure: {verdict.rule}",
        "second": _why(step.second) if step.second else "",
        "changes": [_change(change) for change in step.changes],
        "text": _short(step.turn.text),
        "asked": _short(step.turn.asked),
    }


def _why(reason: Reason) -> str:
    return f'rule {reason.rule!r} ({reason.label}, priority {reason.priority}) on "{_short(reason.words)}"'


def _change(change: Change) -> str:
    if change.part:
        return f'turn {change.turn}: no longer valid in it: "{_short(change.part)}"'
    return f'turn {change.turn} is {change.status.value}: "{_short(change.text)}"'


def _short(text: str) -> str:
    one = " ".join(text.split())
    return one if len(one) <= _WIDEST else one[: _WIDEST - 1] + "…"


def examples(path: Path, rules: RuleSet, *, as_json: bool) -> int:
    """Tries every example of one rule file among all rules in force; 1 when one goes wrong."""
    own = [rule for rule in rules.rules if rule.place.startswith(f"{path}:")]
    wrong = {problem.place: problem for problem in failures(rules, str(path))}
    rows = [row for rule in own for row in _rows(rule, rules, wrong)]
    problems = [str(problem) for problem in wrong.values()]
    if as_json:
        print_json({"ok": not wrong, "rules": len(own), "examples": rows, "problems": problems})
        return 1 if wrong else 0
    for row in rows:
        print(line(f"{row['place']}: {row['outcome']}: {row['text']}"))
        print(line(f"    wanted: {row['wanted']}; decided by {row['rule']!r}: {row['kind']}"))
    for problem in problems:
        print(line(problem))
    print(f"{len(own)} rules, {len(rows)} examples, {len(wrong)} problems")
    return 1 if wrong else 0


def _rows(rule: Rule, rules: RuleSet, wrong: dict[str, Problem]) -> Iterator[dict[str, str]]:
    for kept, wanted in ((rule.match, f"rule {rule.name!r}"), (rule.no_match, f"not rule {rule.name!r}")):
        for example in kept:
            found = judge(example.text, first=False, asked="", rules=rules)
            yield {
                "place": example.place,
                "outcome": "wrong" if example.place in wrong else "right",
                "text": _short(example.text),
                "wanted": wanted,
                "rule": found.rule,
                "kind": found.kind or found.labels[0],
            }
