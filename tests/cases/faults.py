"""The two ways in which a case fails: the proxy does something else, or the file asks for what nobody knows.

Both derive from Exception directly, because neither is an error of the proxy's own tree.
"""

from __future__ import annotations


class Unmet(Exception):
    """An expectation of a case doesn't hold; the text says what was seen instead."""


class Malformed(Exception):
    """A case file can't be run as it stands: unknown word, missing key or wrong type."""


def clip(text: str, limit: int = 160) -> str:
    """Gives a text on one line, short, with control characters escaped, fit for a terminal."""
    shown = text if len(text) <= limit else f"{text[: limit - 40]}…{text[-36:]}"
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in shown)
