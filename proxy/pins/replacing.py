"""What newer words do to older pins: replace them whole or in part, close them, withdraw them.

A wrong replacement loses words for good, a missed one only leaves an older line above a newer one: so each step here
asks for a sign of change in the new words and for a telling word that both texts share.
"""

from __future__ import annotations

import re
from dataclasses import replace

from proxy.pins.model import Pin, Status
from proxy.pins.subject import clauses, denied_values, denies, telling_words

_SHARE = {"goal": 0.5}  # the share of a clause's telling words that must come back in the words that replace it
_ANY_SHARE = 1 / 3
_TURN = re.compile(r"^(?:t|turn\s*)?(\d{1,6})$", re.IGNORECASE)


def replace_older(pins: tuple[Pin, ...], new: Pin, labels: tuple[str, ...]) -> tuple[Pin, ...]:
    """Marks the pin, or the part of one, that newer words make wrong."""
    denied = denied_values(new.text)
    found = _denied_by(pins, denied) if denied else None
    if found is None and {"change", "retract"} & set(labels):
        found = _about(pins, telling_words(new.text))
    if found is None:
        return pins
    old, clause = found
    return tuple(_fell(pin, clause, new.id, Status.SUPERSEDED) if pin is old else pin for pin in pins)


def succeed_goal(pins: tuple[Pin, ...], new: Pin, labels: tuple[str, ...]) -> tuple[Pin, ...]:
    """Closes or supersedes the newest goal when the new words say so; an added goal leaves it standing."""
    status = Status.CLOSED if "close" in labels else Status.SUPERSEDED if {"replace", "retract"} & set(labels) else None
    if status is None:
        return pins
    goal = _goal(pins)
    if goal is None:
        return pins
    return tuple(replace(pin, status=status, superseded_by=new.id) if pin is goal else pin for pin in pins)


def close_goal(pins: tuple[Pin, ...]) -> tuple[Pin, ...]:
    """Closes the newest active goal: the user said that it is done."""
    goal = _goal(pins)
    return tuple(replace(pin, status=Status.CLOSED) if pin is goal else pin for pin in pins)


def retract_matching(pins: tuple[Pin, ...], text: str, last_said: int) -> tuple[Pin, ...]:
    """Withdraws the pin that the words name, or the one just said when they name none."""
    found = _about(pins, telling_words(text))
    if found is None and len(text.split()) <= 4:
        newest = max((pin for pin in pins if pin.active), key=lambda pin: pin.turn, default=None)
        if newest is not None and newest.kind != "goal" and newest.turn > last_said:
            found = (newest, "")
    if found is None:
        return pins
    old, clause = found
    return tuple(_fell(pin, clause, "", Status.RETRACTED) if pin is old else pin for pin in pins)


def retract_named(pins: tuple[Pin, ...], name: str) -> tuple[Pin, ...]:
    """Withdraws every pin of a turn number, with an id, or that holds a text."""
    wanted = " ".join(name.split()).casefold()
    turn = _TURN.match(wanted)

    def named(pin: Pin) -> bool:
        if turn:
            return pin.turn == int(turn[1])
        return pin.id == wanted or wanted in " ".join(pin.text.split()).casefold()

    return tuple(replace(pin, status=Status.RETRACTED) if pin.active and named(pin) else pin for pin in pins)


def _goal(pins: tuple[Pin, ...]) -> Pin | None:
    return next((pin for pin in reversed(pins) if pin.kind == "goal" and pin.active), None)


def _fell(pin: Pin, clause: str, successor: str, status: Status) -> Pin:
    if not clause:
        return replace(pin, status=status, superseded_by=successor)
    return replace(pin, fallen=clause, superseded_by=successor or pin.superseded_by)


def _open(pins: tuple[Pin, ...]) -> list[Pin]:
    """The pins that newer words may still replace, newest first."""
    return [pin for pin in reversed(pins) if pin.active and not pin.fallen]


def _parts(pin: Pin) -> tuple[str, ...]:
    """The clauses of a pin that may fall; the first clause of a goal says what the job is and stays."""
    parts = clauses(pin.text)
    return parts[1:] if pin.kind == "goal" else parts


def _denied_by(pins: tuple[Pin, ...], denied: frozenset[str]) -> tuple[Pin, str] | None:
    for pin in _open(pins):
        for clause in _parts(pin):
            if denied & telling_words(clause) and not denies(clause):
                return pin, clause if len(clauses(pin.text)) > 1 else ""
    return None


def _about(pins: tuple[Pin, ...], words: frozenset[str]) -> tuple[Pin, str] | None:
    """The pin that shares the most telling words, and its clause that shares the most; the newest of equals."""
    best: tuple[int, Pin, str] | None = None
    for pin in _open(pins):
        needed = _SHARE.get(pin.kind, _ANY_SHARE)
        for clause in _parts(pin):
            own = telling_words(clause)
            shared = len(words & own)
            if shared and shared >= needed * len(own) and (best is None or shared > best[0]):
                best = (shared, pin, clause if len(clauses(pin.text)) > 1 else "")
    return (best[1], best[2]) if best else None
