"""How a work log fits its room: older lines become short, then fold into one line that names the archive."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Sequence

from proxy.compaction.blocks import span
from proxy.compaction.digest import LogLine

Count = Callable[[str], int]


def fit(lines: Sequence[LogLine], room: int, count: Count, archive: str) -> tuple[tuple[int, str], ...]:
    """Gives (turn, text) of each line within `room` tokens: the oldest give way first, evidence last."""
    texts = [line.full for line in lines]
    costs = [count(text) + 1 for text in texts]
    total = sum(costs)
    for index, line in enumerate(lines):
        if total <= room:
            break
        texts[index] = line.short
        cost = count(line.short) + 1
        total += cost - costs[index]
        costs[index] = cost
    folded = 0
    while folded < len(lines) and total > room:
        total -= costs[folded]
        folded += 1
    shown = [(line.turn, text) for line, text in zip(lines[folded:], texts[folded:], strict=True)]
    if folded:
        shown.insert(0, (lines[0].turn, _folded_line(lines[:folded], archive)))
    return tuple(shown)


def _folded_line(lines: Sequence[LogLine], archive: str) -> str:
    tools = Tally(line.full.split(" ", 2)[1] for line in lines if line.kind == "step")
    named = ", ".join(f"{name} {times}" for name, times in tools.most_common(5)) or "answers"
    return f"{span(lines[0].turn, lines[-1].turn)}: {named}, archive {archive}"
