"""Runs the examples that stand in rule files, and tries each pattern for patience."""

from __future__ import annotations

import time
from collections.abc import Iterator

from proxy.pins.match import judge
from proxy.pins.reading import Problem
from proxy.pins.rule import Rule
from proxy.pins.rules import RuleSet
from proxy.pins.regexps import Subject

SLOW_SECONDS = 0.25
_HOSTILE = ("a", " ", "a ", "no, ", "不", "1.", "-")


def failures(rules: RuleSet) -> Iterator[Problem]:
    """Gives a problem for each example that goes wrong and each rule that is slow on long texts."""
    for rule in rules.rules:
        for index, example in enumerate(rule.match):
            yield from _must_match(rule, rules, index, example)
        for index, example in enumerate(rule.no_match):
            verdict = judge(example, first=False, asked="", rules=rules)
            if verdict.rule == rule.name or (not rule.decides and rule.label in verdict.labels):
                message = f"{example!r} must not match, but rule {rule.name!r} takes it"
                yield Problem(rule.place, f"examples.no_match[{index}]", message, "add a pattern under 'not'")
        slow = _slow(rule)
        if slow:
            yield Problem(rule.place, f"rule {rule.name!r}", slow, "make its patterns narrower")


def _must_match(rule: Rule, rules: RuleSet, index: int, example: str) -> Iterator[Problem]:
    verdict = judge(example, first=False, asked="", rules=rules)
    if verdict.rule == rule.name or (not rule.decides and rule.label in verdict.labels):
        return
    key = f"examples.match[{index}]"
    if not rule.applies(Subject.of(example), "user", "") and not (rule.roles or rule.clients):
        yield Problem(rule.place, key, f"no pattern of rule {rule.name!r} matches {example!r}", "add or widen a pattern")
    elif rule.decides:
        message = f"{example!r} matches, but rule {verdict.rule!r} decides it"
        yield Problem(rule.place, key, message, f"raise the priority of {rule.name!r} (it is {rule.priority})")


def _slow(rule: Rule) -> str:
    for piece in _HOSTILE:
        for size in (24, 400, 4000):
            subject = Subject.of((piece * size)[:size])
            start = time.perf_counter()
            rule.applies(subject, "user", "")
            spent = time.perf_counter() - start
            if spent > SLOW_SECONDS:
                return f"takes {spent:.1f} s on {size} characters of {piece!r}"
    return ""
