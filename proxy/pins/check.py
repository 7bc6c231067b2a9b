"""Runs the examples that stand in rule files, and tries each pattern for patience."""

from __future__ import annotations

import time
from collections.abc import Iterator

from proxy.pins.match import judge
from proxy.pins.model import Verdict
from proxy.pins.quoted import strip_quoted
from proxy.pins.regexps import Subject
from proxy.pins.rule import Example, Rule
from proxy.pins.rules import RuleSet
from proxy.pins.source import Problem

SLOW_SECONDS = 0.1
LONGEST = 4000  # characters of a turn that a rule may see
_HOSTILE = ("a", " ", "a ", "no, ", "不", "1.", "-")


def failures(rules: RuleSet, file: str = "") -> Iterator[Problem]:
    """Gives a problem for each example that goes wrong and each slow rule; those of one file if asked."""
    for rule in rules.rules:
        if file and not rule.place.startswith(f"{file}:"):
            continue
        yield from _wrong_in(rule, rules)
        slow = _slow(rule)
        if slow:
            yield Problem(rule.place, "", f"rule {rule.name!r} {slow}", "make its patterns narrower")


def wrong_examples(rules: RuleSet) -> Iterator[Problem]:
    """Gives a problem for each example that goes wrong; takes milliseconds, other than trying rules for patience."""
    for rule in rules.rules:
        yield from _wrong_in(rule, rules)


def _wrong_in(rule: Rule, rules: RuleSet) -> Iterator[Problem]:
    for example in rule.match:
        yield from _must_match(rule, rules, example)
    for example in rule.no_match:
        if _takes(rule, judge(example.text, first=False, asked="", rules=rules)):
            message = f"{example.text!r} must not match, but rule {rule.name!r} takes it"
            yield Problem(example.place, "", message, "add a pattern under 'not'")


def _takes(rule: Rule, verdict: Verdict) -> bool:
    return verdict.rule == rule.name or (not rule.decides and rule.label in verdict.labels)


def _must_match(rule: Rule, rules: RuleSet, example: Example) -> Iterator[Problem]:
    if rule.roles or rule.clients:  # such a rule speaks only where the client is known
        return
    verdict = judge(example.text, first=False, asked="", rules=rules)
    if _takes(rule, verdict):
        return
    if not rule.applies(Subject.of(strip_quoted(example.text)), "user", ""):
        message = f"no pattern of rule {rule.name!r} matches {example.text!r}"
        yield Problem(example.place, "", message, "add or widen a pattern")
    else:
        message = f"rule {rule.name!r} matches {example.text!r}, but {verdict.rule!r} decides it"
        yield Problem(example.place, "", message, f"raise the priority of {rule.name!r} (it is {rule.priority})")


def _slow(rule: Rule) -> str:
    """Tries the rule on texts that grow slowly, so that a pattern that explodes is caught before it hangs."""
    for piece in _HOSTILE:
        size = 8
        while size <= LONGEST:
            subject = Subject.of((piece * size)[:size])
            start = time.process_time()
            rule.applies(subject, "user", "")
            spent = time.process_time() - start
            if spent > SLOW_SECONDS:
                return f"takes {spent:.1f} s on {size} characters of {piece!r}"
            size = size * 5 // 4
    return ""
