"""Quotes in a client's own summary that no human turn holds: what a summary says the user said is no proof."""

from __future__ import annotations

import re
from collections.abc import Iterable

from proxy.lineage.keys import normal

_QUOTE = re.compile('["\u201c\u201e\u00ab\u300c]([^"\u201c\u201d\u00bb\u300d]{8,400})["\u201c\u201d\u00bb\u300d]')
_WORDS = 3  # shorter quotes are names of files and fields


def unverified(summaries: Iterable[str], humans: Iterable[str]) -> tuple[str, ...]:
    """Gives the quoted sentences of the summaries that stand in no human turn."""
    said = " ".join(normal(text) for text in humans)
    found = []
    for summary in summaries:
        for quote in _QUOTE.findall(summary):
            words = normal(quote)
            if (len(words.split()) >= _WORDS or not words.isascii()) and words not in said:
                found.append(words)
    return tuple(found)
