"""What counts as a fact or pin of a case: facts and pins are two views of the same words, so each pin counts once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tests.cases.evidence import Evidence, Record


def all_facts(evidence: Evidence) -> list[Record]:
    """Gives the facts, and the pins that no fact stands for, of every status. Raises Unmet when a door is shut."""
    evidence.door("facts")
    evidence.door("pins")
    return merged(evidence.stored.facts, evidence.stored.pins)


def active_facts(evidence: Evidence) -> list[Record]:
    """Gives those that hold now."""
    return active(all_facts(evidence))


def merged(facts: Sequence[Record], pins: Sequence[Record]) -> list[Record]:
    """Gives facts and the pins that none of them stands for."""
    known = {fact.get("pin") for fact in facts}
    return [*facts, *(pin for pin in pins if pin.get("id") not in known)]


def active(facts: Iterable[Record]) -> list[Record]:
    """Gives those of the status active."""
    return [fact for fact in facts if fact.get("status") == "active"]


def holds(fact: Record, text: str) -> bool:
    """Tells whether a fact's text or quote contains these words."""
    return any(text in str(fact.get(key) or "") for key in ("text", "quote"))
