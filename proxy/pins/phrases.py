"""Tells whether a turn consists of known phrases and nothing else: "yes, looks good, go on".

Word lists combine freely, in any language mix, which no list of whole sentences could hold. Punctuation, emoji, letter
case and drawn-out letters ("yesss") don't matter; a question mark does: then it isn't said, it's asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

MOST = 90  # characters of a turn that can be nothing but phrases
SEPARATOR = "|"  # stands between the phrases of one line of a rule file

_LAUGHS = re.compile(r"\b(?:ha|ха|he|хе)(?:-(?:ha|ха|he|хе))+\b|\b(?:a?(?:ha|he|hi|ja|je|hue|ха|хе){2,}h?)\b|[哈呵嘿]{2,}|[ㅎㅋ]{2,}|(?:はは)+|ه{3,}|(?:ها){2,}")
_DRAWN = re.compile(r"([^\W\d_])\1{2,}")
_APART = re.compile(r"[^\w'&+]+|_")
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff]")


def plain(text: str) -> str:
    """Gives a lower-case text as phrases are compared: words with one space between them."""
    short = _DRAWN.sub(r"\1", _LAUGHS.sub(" haha ", text))
    return _APART.sub(" ", short).strip()


@dataclass(frozen=True, slots=True)
class Phrases:
    """Phrases of a rule, and those that may stand beside them."""

    own: frozenset[str]
    beside: frozenset[str]
    lengths: tuple[int, ...]

    @classmethod
    def of(cls, own: Iterable[str], beside: Iterable[str] = ()) -> Phrases:
        """Reads lines of phrases."""
        mine, others = frozenset(_split(own)), frozenset(_split(beside))
        return cls(mine, others - mine, tuple(sorted({len(phrase) for phrase in mine | others})))

    def make_up(self, text: str) -> bool:
        """Tells whether a lower-case text consists of the phrases, at least one of them the rule's own."""
        if len(text) > MOST or "?" in text or "？" in text or "؟" in text:
            return False
        said = plain(text)
        return bool(said) and self._covers(said)

    def _covers(self, said: str) -> bool:
        """Walks from each place that phrases reach; a place is kept once with and once without an own phrase before."""
        end = len(said)
        todo, seen = [(0, False)], set[tuple[int, bool]]()
        while todo:
            start, owned = todo.pop()
            for length in self.lengths:
                stop = start + length
                phrase = said[start:stop]
                if stop > end or not _ends(said, stop) or not (phrase in self.own or phrase in self.beside):
                    continue
                state = (stop + (said[stop : stop + 1] == " "), owned or phrase in self.own)
                if state == (end, True):
                    return True
                if state not in seen:
                    seen.add(state)
                    todo.append(state)
        return False


def _ends(said: str, stop: int) -> bool:
    """Tells whether a word can end here: before a space, or anywhere in scripts without spaces."""
    if stop >= len(said) or said[stop] == " ":
        return True
    return _UNSPACED.match(said, stop) is not None or _UNSPACED.match(said, stop - 1) is not None


def _split(lines: Iterable[str]) -> Iterable[str]:
    for line in lines:
        for phrase in line.lower().split(SEPARATOR):
            words = plain(phrase)
            if words:
                yield words
