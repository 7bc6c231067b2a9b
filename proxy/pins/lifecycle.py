"""The life of pins: each human turn takes the ledger one step further; nothing is ever taken out of it.

`add` is the step, `fold` is repeated `add`, `amend` applies what people changed by hand on top of that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Literal

import msgspec
from msgspec.structs import replace

from proxy.pins.keep import Kept, Line, Shown, give_way
from proxy.pins.match import judge
from proxy.pins.model import Entry, Kind, Ledger, Pin, Status, Verdict
from proxy.pins.replacing import close_goal, lift_holds, replace_older, retract_matching, retract_named, succeed_goal
from proxy.pins.rules import RuleSet
from proxy.transcript import HumanTurn

__all__ = ["Edit", "Kept", "Line", "Shown", "add", "amend", "fold", "give_way", "pin_id"]

_HOLDS_OPEN = ("approval", "chatter", "question")  # what may be said while a one-off order is still being carried out


class Edit(msgspec.Struct, frozen=True):
    """What a person changed by hand: a new pin (`text`, `kind`), or the end of one (`pin`)."""

    action: Literal["add", "close", "retract"]
    pin: str = ""  # id of the pin to close or retract
    text: str = ""
    kind: Kind = "constraint"
    rule: str = "by hand"
    turn: bytes = b""  # key of the human turn whose words `text` are, from which character to which
    span: tuple[int, int] | None = None


def pin_id(key: bytes, span: tuple[int, int] | None, occurrence: int) -> str:
    """Gives the id of a pin, the same on every replay: "p" and 11 hex digits."""
    start, end = span or (-1, -1)
    return "p" + blake2b(key + f"|{start}:{end}|{occurrence}".encode(), digest_size=8).hexdigest()[:11]


def fold(turns: Iterable[HumanTurn], rules: RuleSet, edits: Sequence[Edit] = (), *, client: str = "") -> Ledger:
    """Gives the ledger of a whole branch."""
    ledger = Ledger()
    for turn in turns:
        ledger = add(ledger, turn, rules, client=client)
    return amend(ledger, edits)


def add(ledger: Ledger, turn: HumanTurn, rules: RuleSet, *, client: str = "") -> Ledger:
    """Gives the ledger after one more human turn; the old one stays as it is."""
    goal = ledger.goal
    verdict = judge(turn.text, first=goal is None, asked=turn.asked, rules=rules, via=turn.via, client=client)
    pins = _expire_once(ledger.pins, verdict)
    if verdict.kind is None:
        return _passing(ledger, pins, turn, verdict)
    pin = _pin(ledger, turn, verdict, verdict.kind)
    if any(old.active and old.kind == pin.kind and _same(old.text, pin.text) for old in pins):
        return Ledger(pins, ledger.history)
    if pin.kind != "goal":
        pins = replace_older(pins, pin, verdict.labels)
    elif goal is None:
        pins = _link_closed(pins, pin)
    else:
        pins = succeed_goal(pins, pin, verdict.labels)
    return Ledger((*pins, pin), ledger.history)


def amend(ledger: Ledger, edits: Sequence[Edit]) -> Ledger:
    """Applies what people changed by hand, in order."""
    pins = list(ledger.pins)
    for edit in edits:
        if edit.action == "add" and edit.turn:
            pins += _proposed(ledger, pins, edit)
            continue
        if edit.action == "add":
            key = blake2b(edit.text.encode(), digest_size=16).digest()
            count = sum(pin.rule == "by hand" and pin.text == edit.text for pin in pins)
            turn = max((pin.turn for pin in pins), default=0)
            pins.append(Pin(pin_id(key, None, count), edit.kind, edit.text, b"", turn, "", "by hand", by_hand=True))
            continue
        status = Status.CLOSED if edit.action == "close" else Status.RETRACTED
        pins = [replace(pin, status=status, by_hand=True) if pin.id == edit.pin else pin for pin in pins]
    return Ledger(tuple(pins), ledger.history)


def _proposed(ledger: Ledger, pins: Sequence[Pin], edit: Edit) -> list[Pin]:
    """Gives the pin of words that a model proposed, where their turn was said and nothing of it binds already."""
    entry = next((entry for entry in ledger.history if entry.key == edit.turn), None)
    if entry is None or not edit.span or entry.text[slice(*edit.span)] != edit.text:
        return []
    identity = pin_id(edit.turn, edit.span, 0)
    if any(pin.id == identity for pin in pins):
        return []
    pin = Pin(
        identity, edit.kind, edit.text, edit.turn, entry.turn, entry.message, edit.rule, span=edit.span, via=entry.via
    )
    return [pin]


def _passing(ledger: Ledger, pins: tuple[Pin, ...], turn: HumanTurn, verdict: Verdict) -> Ledger:
    label = verdict.labels[0] if verdict.labels else "step"
    entry = Entry(turn.key, turn.text, turn.number, turn.message, label, turn.via)
    if "control" in verdict.labels and verdict.span:
        pins = retract_named(pins, turn.text[slice(*verdict.span)])
    elif "retract" in verdict.labels:
        # A bare "never mind" means what was said last, but after a question of the assistant's it answers that.
        last_said = turn.number if "?" in turn.asked else max((old.turn for old in ledger.history), default=-1)
        pins = retract_matching(pins, turn.text, last_said)
    elif "close" in verdict.labels:
        pins = close_goal(pins)
    elif label in ("approval", "step"):
        pins = lift_holds(pins, turn.text)
    return Ledger(pins, (*ledger.history, entry))


def _pin(ledger: Ledger, turn: HumanTurn, verdict: Verdict, kind: Kind) -> Pin:
    text = turn.text[slice(*verdict.span)] if verdict.span else turn.text
    occurrence = sum(pin.key == turn.key and pin.span == verdict.span for pin in ledger.pins)
    asked = turn.asked if kind == "decision" else ""
    identity = pin_id(turn.key, verdict.span, occurrence)
    return Pin(
        identity, kind, text, turn.key, turn.number, turn.message, verdict.rule, verdict.scope,
        span=verdict.span, asked=asked, via=turn.via,
    )  # fmt: skip


def _same(one: str, other: str) -> bool:
    return one == other or " ".join(one.split()).casefold() == " ".join(other.split()).casefold()


def _expire_once(pins: tuple[Pin, ...], verdict: Verdict) -> tuple[Pin, ...]:
    if verdict.labels and verdict.labels[0] in _HOLDS_OPEN:
        return pins
    if not any(pin.active and pin.scope == "once" for pin in pins):
        return pins
    return tuple(replace(pin, status=Status.EXPIRED) if pin.active and pin.scope == "once" else pin for pin in pins)


def _link_closed(pins: tuple[Pin, ...], new: Pin) -> tuple[Pin, ...]:
    """Lets a goal that was closed earlier point to the one that came after it."""
    return tuple(
        replace(pin, superseded_by=new.id)
        if pin.kind == "goal" and pin.status is Status.CLOSED and not pin.superseded_by
        else pin
        for pin in pins
    )
