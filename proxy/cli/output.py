"""How commands print: tables for people, JSON for programs. Stored words are hostile: no control character gets out."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from proxy.cli.main import printable

_WIDEST = 72  # characters of the last column, which holds the text


def add_json_flag(parser: argparse.ArgumentParser) -> None:
    """Adds `--json`."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def print_json(value: object) -> None:
    """Prints a value as JSON; what isn't ASCII is escaped, so a terminal obeys nothing in it."""
    print(json.dumps(value, indent=2))


def print_table(columns: Sequence[str], rows: Sequence[Mapping[str, Any]], empty: str) -> None:
    """Prints one line a row under a head line; `empty` is said when there are none."""
    if not rows:
        print(empty)
        return
    cells = [[line(str(row[column])) for column in columns] for row in rows]
    widths = [max(len(column), *(len(row[i]) for row in cells)) for i, column in enumerate(columns)]
    for row in ([column.upper() for column in columns], *cells):
        short = [*row[:-1], row[-1] if len(row[-1]) <= _WIDEST else row[-1][: _WIDEST - 1] + "…"]
        print("  ".join(cell.ljust(width) for cell, width in zip(short, widths, strict=True)).rstrip())


def print_fields(row: Mapping[str, Any]) -> None:
    """Prints one thing, a field a line; longer texts keep their line breaks."""
    for name, value in row.items():
        text = value if isinstance(value, str) else json.dumps(value)
        print(f"{name}: {printable(text)}")


def print_one(row: Mapping[str, Any], *, as_json: bool) -> None:
    """Prints one thing, for people or for programs."""
    (print_json if as_json else print_fields)(row)


def line(text: str) -> str:
    """Gives a text on one line, control characters escaped."""
    return printable(text).replace("\n", "⏎")


class Commands(Protocol):
    """What a part of a command needs to add its own words."""

    def add_parser(self, name: str, *, help: str) -> argparse.ArgumentParser:  # noqa: A002 (argparse calls it so)
        """Adds one word with its own flags."""
