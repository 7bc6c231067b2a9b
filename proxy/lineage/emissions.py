"""Texts that passed through us as answers: recognised when they come back elsewhere, in other wrapping."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import lru_cache

from proxy.lineage.index import Bounded
from proxy.lineage.keys import Request, hashed, normal, text_of
from proxy.lineage.records import EmissionRecord

SHORT = 24  # a line or text below this proves nothing
LEAST = 40  # characters of a text that can be recognised at all
LEAST_ORDINARY = 80  # the same for an answer that wasn't a summary
SHARE = 0.6  # of an emission's lines that must come back
_WHOLE = 10**6  # weight of an opaque item that comes back whole
_LINES_KEPT = 400
_EMISSIONS_KEPT = 4000
_LINES_HELD = 40_000  # of all emissions: about 10 MB
_READ = 60_000  # characters of one text that are looked at
_BARE_TAG = re.compile(r"</?[a-zA-Z_]{3,20}>")
_SENTENCE_END = re.compile(r"\n|(?<=[.!?])\s+|(?<=[。！？])")
_ANALYSIS = re.compile(r"<analysis>.*?</analysis>", re.DOTALL)


@lru_cache(maxsize=64)
def lines_of(text: str) -> tuple[tuple[bytes, int], ...]:
    """Gives hash and length of each sentence that is long enough, each once, bare tags removed.

    Sentences, not whole lines: clients wrap summaries anew, and put words of their own behind them on the same line.
    """
    found: dict[bytes, int] = {}
    for line in _SENTENCE_END.split(_ANALYSIS.sub("", text[:_READ])):
        words = normal(_BARE_TAG.sub("", line))
        if len(words) >= SHORT:
            found[hashed("l", words)] = len(words)
    return tuple(found.items())[:_LINES_KEPT]


class Emissions:
    """All emissions of one engine, by their lines."""

    def __init__(self) -> None:
        self._all: dict[str, EmissionRecord] = {}
        self._lines: Bounded[str] = Bounded(32)
        self._held = 0

    def add(self, emission: EmissionRecord) -> None:
        """Makes an emission recognisable; the oldest are forgotten."""
        if emission.id in self._all:
            return
        self._held += len(emission.lines)
        while self._all and (len(self._all) >= _EMISSIONS_KEPT or self._held > _LINES_HELD):
            self._forget(next(iter(self._all)))
        self._all[emission.id] = emission
        for line, _ in emission.lines:
            self._lines.add(line, emission.id)
        if emission.whole:
            self._lines.add(emission.whole, emission.id)

    def forget(self, branches: Collection[str]) -> None:
        """Takes out the answers that may be one of these branches'."""
        for name in [one.id for one in self._all.values() if not set(branches).isdisjoint(one.branches)]:
            self._forget(name)

    def _forget(self, name: str) -> None:
        emission = self._all.pop(name)
        self._held -= len(emission.lines)
        for line, _ in emission.lines:
            self._lines.drop(line, name)
        self._lines.drop(emission.whole, name)

    def in_text(self, text: str) -> dict[str, int]:
        """Gives the characters of each emission that stand in this text."""
        seen: dict[str, int] = {}
        for line, length in lines_of(text):
            for name in self._lines.get(line):
                seen[name] = seen.get(name, 0) + length
        return seen

    def opaque(self, text: str) -> Iterable[str]:
        """Gives the emissions that are this opaque item."""
        return self._lines.get(hashed("o", text))

    def returned(self, request: Request) -> list[EmissionRecord]:
        """Gives the emissions that come back most completely in this body: a summary before an ordinary answer."""
        seen: dict[str, int] = {}
        for key in request.keys:
            if key.kind == "c":
                continue
            text = text_of(request.transcript.messages[key.message], key)
            if key.kind == "o":
                seen.update(dict.fromkeys(self.opaque(text), _WHOLE))
                continue
            for name, length in self.in_text(text).items():
                if self._all[name].summary or key.kind == "a":
                    seen[name] = seen.get(name, 0) + length
        full = [(self._all[name], length) for name, length in seen.items() if self._enough(self._all[name], length)]
        if any(emission.summary for emission, _ in full):
            full = [(emission, length) for emission, length in full if emission.summary]
        most = max((length for _, length in full), default=0)
        return [emission for emission, length in full if length == most]

    def answers_in(self, text: str) -> list[EmissionRecord]:
        """Gives the answers, summaries aside, that stand in this text."""
        seen = {name: length for name, length in self.in_text(text).items() if not self._all[name].summary}
        return [self._all[name] for name, length in seen.items() if self._enough(self._all[name], length)]

    def carries_summary(self, text: str) -> bool:
        """Whether a summary that we relayed stands in this text."""
        return any(
            self._all[name].summary and self._enough(self._all[name], length)
            for name, length in self.in_text(text).items()
        )

    @staticmethod
    def _enough(emission: EmissionRecord, length: int) -> bool:
        if length >= _WHOLE:
            return True
        least = LEAST if emission.summary else LEAST_ORDINARY
        return length >= least and length >= SHARE * emission.total
