"""Reads text that holds JSON values, one after the other, and says at which line each begins or breaks."""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterator
from typing import Any

import msgspec

_BLANK = re.compile(r"[\s\x1e\ufeff]*")
_decoder = json.JSONDecoder()


class Broken(msgspec.Struct, frozen=True):
    """What can't be used, and where it stands."""

    line: int
    reason: str


def lines_of(text: str) -> Iterator[tuple[int, Any]]:
    """Gives number and value of each line that isn't blank; `Broken` for one that is no JSON."""
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip("\r \t\ufeff"):
            continue
        try:
            yield number, _sound(number, json.loads(line.strip("\r \t\ufeff")))
        except ValueError as error:
            yield number, Broken(number, f"not valid JSON: {_reason(error)}")
        except RecursionError:
            yield number, Broken(number, "nested too deeply")


def values_of(text: str) -> Iterator[tuple[int, Any]]:
    """Gives line and value of each JSON value; lists are given item by item. Ends with `Broken` where it breaks.

    Several lists in a row, as `gh api --paginate` prints them, are as good as one.
    """
    at = _after_blanks(text, 0)
    while at < len(text):
        if text[at] == "[":
            at = yield from _items(text, at + 1)
        else:
            at = yield from _value(text, at)
        if at < 0:
            return
        at = _after_blanks(text, at)


def _items(text: str, at: int) -> Generator[tuple[int, Any], None, int]:
    """Gives the items of a list from behind its bracket; returns the place behind it, -1 where it breaks."""
    while True:
        at = _after_blanks(text, at)
        if text[at : at + 1] == "]":
            return at + 1
        at = yield from _value(text, at)
        if at < 0:
            return -1
        at = _after_blanks(text, at)
        if text[at : at + 1] == ",":
            at += 1
        elif text[at : at + 1] != "]":
            yield _line(text, at), Broken(_line(text, at), "not valid JSON: the list isn't closed here")
            return -1


def _value(text: str, at: int) -> Generator[tuple[int, Any], None, int]:
    line = _line(text, at)
    try:
        value, end = _decoder.raw_decode(text, at)
    except json.JSONDecodeError as error:
        yield error.lineno, Broken(error.lineno, f"not valid JSON: {_reason(error)}")
        return -1
    except RecursionError:
        yield line, Broken(line, "nested too deeply")
        return -1
    yield line, _sound(line, value)
    return end


def _sound(line: int, value: Any) -> Any:  # noqa: ANN401  any JSON
    """Gives a value that can be written in UTF-8; halves of characters can't."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return Broken(line, "holds half of a character (a lone surrogate)")
    return value


def _after_blanks(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _reason(error: ValueError) -> str:
    return f"{error.msg} at column {error.colno}" if isinstance(error, json.JSONDecodeError) else str(error)
