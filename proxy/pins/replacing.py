"""What newer words do to older pins: replace them whole or in part, close them, withdraw them.

A wrong replacement loses words for good, a missed one only leaves an older line above a newer one: so each step here
asks for a sign of change in the new words and for a telling word that both texts share.
"""

from __future__ import annotations

import re
from functools import lru_cache

from msgspec.structs import replace

from proxy.pins.model import Pin, Status
from proxy.pins.subject import clauses, denied_values, denies, sentences, subject_words, telling_words
from proxy.pins.turning import holds, lets_go, turned_by
from proxy.pins.values import Value, values

LOOKED = 1000  # characters of newer words that are looked at for what they replace
_SHARE = {"goal": 0.5}  # the share of a clause's telling words that must come back in the words that replace it
_ANY_SHARE = 1 / 3
_LOOSE = frozenset(
    {"number", "weekday", "date", "time", "address", "version"}
)  # sorts that many things may have at once
_TURN = re.compile(r"^(?:t|turn\s*)?(\d{1,6})$", re.IGNORECASE)


def replace_older(pins: tuple[Pin, ...], new: Pin, labels: tuple[str, ...]) -> tuple[Pin, ...]:
    """Marks the pin, or the part of one, that newer words make wrong."""
    changes = not {"change", "retract"}.isdisjoint(labels)
    text = new.text[:LOOKED]
    found = _denied_by(pins, denied_values(text))
    found = found or (_about(pins, telling_words(text)) if changes else None)
    found = found or _turned(pins, text) or _revalued(pins, text, changes=changes)
    if found is not None:
        old, clause = found
        pins = tuple(_fell(pin, clause, new.id, Status.SUPERSEDED) if pin is old else pin for pin in pins)
    return lift_holds(pins, text, new.id)


def lift_holds(pins: tuple[Pin, ...], text: str, successor: str = "") -> tuple[Pin, ...]:
    """Ends the newest hold ("no code yet") when the words let it go ("go ahead")."""
    if not lets_go(text):
        return pins
    for pin in _open(pins):
        held = _held(pin)
        if held is None:
            continue
        status = Status.SUPERSEDED if successor else Status.RETRACTED
        return tuple(_fell(one, held, successor, status) if one is pin else one for one in pins)
    return pins


def _held(pin: Pin) -> str | None:
    """The part of a pin that holds for the time being, "" for all of it, None when nothing does."""
    said = sentences(pin.text)
    held = [one for one in said if holds(one)]
    if not held:
        return None
    if len(held) == len(said):
        return None if pin.kind == "goal" else ""
    if pin.kind == "goal" and held[0] == said[0]:
        return None
    return held[0]


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
    if not denied:
        return None
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


def _turned(pins: tuple[Pin, ...], text: str) -> tuple[Pin, str] | None:
    """The newest pin that speaks about the same subject in the other direction: left out, then put back."""
    words = telling_words(text)
    for pin in _open(pins):
        if pin.kind == "goal":
            continue
        for clause in _parts(pin):
            own = telling_words(clause)
            if words & own and len(words & own) >= _ANY_SHARE * len(own) and turned_by(clause, text):
                return pin, clause if len(clauses(pin.text)) > 1 else ""
    return None


def _revalued(pins: tuple[Pin, ...], text: str, *, changes: bool) -> tuple[Pin, str] | None:
    """The newest clause with another value of the same sort.

    With a sign of change that is enough, when no other pin holds such a value or the subject is the same. Without one
    every other word of the clause has to come back too, and the value has to have a unit.
    """
    own = values(text)
    if not own:
        return None
    parts = [(pin, clause) for pin in _open(pins) for clause in _parts(pin) if values(clause)]
    found = [(pin, clause) for pin, clause in parts if pin.kind != "goal" and _differ(values(clause), own)]
    if changes:
        bare = _bare(own)
        shared = [one for one in parts if _shares(*one, text) and _differ(_bare(values(one[1])), bare)]
        alone = found if len({pin.id for pin, _ in found}) == 1 else []
        chosen = (shared or alone)[:1]
    else:
        chosen = [one for one in found if _same_subject(one[1], text)][:1]
    return next(((pin, clause if len(clauses(pin.text)) > 1 else "") for pin, clause in chosen), None)


def _shares(pin: Pin, clause: str, text: str) -> bool:
    about = subject_words(clause)
    common = len(about & subject_words(text))
    return common > 0 and common >= _SHARE.get(pin.kind, 0) * len(about)


@lru_cache(maxsize=4096)
def _bare(found: frozenset[Value]) -> frozenset[Value]:
    """Measures as bare numbers: who changes "30 min" may just say "50"."""
    return frozenset(value if value.sort in _LOOSE else Value("number", value.text) for value in found)


@lru_cache(maxsize=4096)
def _differ(old: frozenset[Value], new: frozenset[Value]) -> bool:
    """Tells whether some sort of value stands in both and has nothing in common."""
    both = {value.sort for value in old & new}
    return bool({value.sort for value in old} & {value.sort for value in new} - both)


def _same_subject(clause: str, text: str) -> bool:
    old, new = values(clause), values(text)
    with_unit = {value.sort for value in old} - _LOOSE
    about = subject_words(clause)
    return (
        bool(about)
        and about <= subject_words(text)
        and any(value.sort in with_unit for value in new)
        and _differ(frozenset(v for v in old if v.sort in with_unit), new)
    )
