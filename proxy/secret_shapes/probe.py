"""A text as the searches see it, and what they give."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import AnyStr, NamedTuple

import msgspec


class Secret(NamedTuple):
    """One secret value in a text: characters start to end (exclusive), its kind and itself."""

    start: int
    end: int
    kind: str
    value: str


_ASCII = bytes(range(128))
_HUMAN = 64 << 10  # characters


class Probe(msgspec.Struct, frozen=True):
    """A text with the same positions as bytes, one a character: to search bytes is faster."""

    text: str
    plain: bytes
    low: bytes
    foreign: bytes  # what isn't ASCII alone, in UTF-8

    @classmethod
    def of(cls, text: str) -> Probe:
        """Gives the probe of a text; what isn't ASCII stands as a question mark in its bytes."""
        plain = text.encode("ascii", "replace")
        foreign = b"" if text.isascii() else text.encode("utf-8", "replace").translate(None, _ASCII)
        return cls(text, plain, plain.lower(), foreign)

    @property
    def human(self) -> bool:
        """Whether a person can have written this: what only people write isn't looked for in a megabyte of output."""
        return len(self.text) <= _HUMAN


def places(text: AnyStr, anchor: AnyStr) -> Iterable[int]:
    """Gives where an anchor stands, in order."""
    at = text.find(anchor)
    return _from(text, anchor, at) if at >= 0 else ()


def _from(text: AnyStr, anchor: AnyStr, at: int) -> Iterator[int]:
    while at >= 0:
        yield at
        at = text.find(anchor, at + 1)
