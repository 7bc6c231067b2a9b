"""Tells whether a turn consists of known phrases and nothing else: "yes, looks good, go on".

Word lists combine freely, in any language mix, which no list of whole sentences could hold. Punctuation, emoji, letter
case and drawn-out letters ("yesss") don't matter; a question mark does: then it isn't said, it's asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec

MOST = 90  # characters of a turn that can be nothing but phrases
SEPARATOR = "|"  # stands between the phrases of one line of a rule file

_LAUGHS = re.compile(
    r"\b(?:ha|ха|he|хе)(?:-(?:ha|ха|he|хе))+\b|\b(?:a?(?:ha|he|hi|ja|je|hue|ха|хе){2,}h?)\b|[哈呵嘿]{2,}|[ㅎㅋ]{2,}|(?:はは)+|ه{3,}|(?:ها){2,}"
)
_DRAWN = re.compile(r"([^\W\d_])\1{2,}")
_APART = re.compile(r"[^\w'&+]+|_")
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff]")


def plain(text: str) -> str:
    """Gives a lower-case text as phrases are compared: words with one space between them."""
    short = _DRAWN.sub(r"\1", _LAUGHS.sub(" haha ", text))
    return _APART.sub(" ", short).strip()


def comparable(lower: str) -> str:
    """Gives a turn as it is compared with phrases, "" when it is too long for that, or a question."""
    if len(lower) > MOST or "?" in lower or "？" in lower or "؟" in lower:
        return ""
    return plain(lower)


class Phrases(msgspec.Struct, frozen=True):
    """Phrases of a rule, and those that may stand beside them."""

    own: Mapping[str, bool]  # each phrase, and whether it is the rule's own
    lengths: Mapping[str, tuple[int, ...]]  # by first letter: how long phrases are

    @classmethod
    def of(cls, own: Iterable[str], beside: Iterable[str] = ()) -> Phrases:
        """Reads lines of phrases."""
        words = dict.fromkeys(_split(beside), False) | dict.fromkeys(_split(own), True)
        lengths: dict[str, set[int]] = {}
        for phrase in words:
            lengths.setdefault(phrase[0], set()).add(len(phrase))
        return cls(words, {first: tuple(sorted(known)) for first, known in lengths.items()})

    def make_up(self, said: str) -> bool:
        """Tells whether a comparable text consists of the phrases, at least one of them the rule's own.

        Each place that phrases reach is kept once with and once without an own phrase before it.
        """
        end = len(said)
        todo, seen = [(0, False)], set[tuple[int, bool]]()
        while todo and said:
            start, owned = todo.pop()
            for length in self.lengths.get(said[start], ()):
                stop = start + length
                mine = self.own.get(said[start:stop]) if stop <= end else None
                if mine is None or not _ends(said, stop):
                    continue
                state = (stop + (said[stop : stop + 1] == " "), owned or mine)
                if state[0] == end:
                    if state[1]:
                        return True
                elif state not in seen:
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
