"""Prints results as a table, or as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from agents.checks import Result

_HEADS = (
    "AGENT",
    "VERSION",
    "SCENARIO",
    "WORDS before | after 1 | 2 …",
    "SIDE",
    "SUB",
    "VALID",
    "ERRORS",
    "OWN",
    "CUTS",
    "",
)


def row(result: Result) -> tuple[str, ...]:
    """Gives a result as the cells of a row."""
    words = " | ".join(map(str, result.words))
    counts = (str(result.sides), str(result.tasks), str(result.valid), str(len(result.errors)))
    own = (str(result.compactions), str(result.cuts))
    return (result.agent, result.version, result.scenario, words, *counts, *own, "WRONG" if result.wrong else "ok")


def table(results: Sequence[Result]) -> str:
    """Gives the table, and below it what is wrong."""
    rows = [_HEADS, *map(row, results)]
    widths = [max(len(cells[place]) for cells in rows) for place in range(len(_HEADS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip() for cells in rows]
    return "\n".join([*lines, *(f"{one.agent} {one.scenario}: {fault}" for one in results for fault in one.wrong)])


def as_json(results: Sequence[Result]) -> str:
    """Gives all results as JSON."""
    return json.dumps([asdict(result) for result in results], indent=1)
