"""Tells how each turn was judged: which rule decided, on which words, what came second, what it did to older pins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from proxy.pins.lifecycle import add
from proxy.pins.match import applying, judge, own_words
from proxy.pins.model import Ledger, Pin, Status, Verdict
from proxy.pins.regexps import Subject
from proxy.pins.rule import Rule
from proxy.pins.rules import RuleSet
from proxy.transcript import HumanTurn

_GONE = (Status.SUPERSEDED, Status.RETRACTED)


class Reason(msgspec.Struct, frozen=True):
    """One rule that speaks about a turn, and the words on which it does."""

    rule: str
    label: str
    priority: int
    words: str
    decides: bool


class Change(msgspec.Struct, frozen=True):
    """What a turn did to an older pin; `part` is the clause that fell when the rest still holds."""

    turn: int
    pin: str
    status: Status
    text: str
    part: str = ""

    @property
    def replaced(self) -> bool:
        """Whether older words are no longer true, rather than done or used up."""
        return bool(self.part) or self.status in _GONE


class Step(msgspec.Struct, frozen=True):
    """One human turn as it was judged, with the ledger after it."""

    turn: HumanTurn
    verdict: Verdict
    reasons: tuple[Reason, ...]  # highest priority first; structure that decided without a rule isn't among them
    changes: tuple[Change, ...]
    ledger: Ledger

    @property
    def reason(self) -> Reason | None:
        """The rule that decided, None when structure did."""
        return next((one for one in self.reasons if one.rule == self.verdict.rule), None)

    @property
    def second(self) -> Reason | None:
        """The rule that would have decided without the one that did."""
        return next((one for one in self.reasons if one.decides and one.rule != self.verdict.rule), None)


def trace(turns: Iterable[HumanTurn], rules: RuleSet, *, client: str = "", reasons: bool = True) -> Iterator[Step]:
    """Yields each turn as the lifecycle takes it; without `reasons` only what was decided."""
    ledger = Ledger()
    for turn in turns:
        first = ledger.goal is None
        verdict = judge(turn.text, first=first, asked=turn.asked, rules=rules, via=turn.via, client=client)
        after = add(ledger, turn, rules, client=client)
        told = tuple(_reasons(turn, rules, client)) if reasons else ()
        yield Step(turn, verdict, told, tuple(_changes(ledger, after)), after)
        ledger = after


def _reasons(turn: HumanTurn, rules: RuleSet, client: str) -> Iterator[Reason]:
    subject = Subject.of(own_words(turn.text))
    for rule in applying(rules, subject, turn.via, client):
        yield _reason(rule, subject)


def _reason(rule: Rule, subject: Subject) -> Reason:
    return Reason(rule.name, rule.label, rule.priority, rule.words_in(subject), rule.decides)


def _changes(before: Ledger, after: Ledger) -> Iterator[Change]:
    old: dict[str, Pin] = {pin.id: pin for pin in before.pins}
    for pin in after.pins:
        was = old.get(pin.id)
        if was is not None and (was.status, was.fallen) != (pin.status, pin.fallen):
            part = pin.fallen if pin.fallen != was.fallen else ""
            yield Change(pin.turn, pin.id, pin.status, pin.text, part)
