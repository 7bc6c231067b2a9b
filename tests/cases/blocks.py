"""Reads the blocks that the proxy inserts: the user's words that hold, and which of them a later block withdraws.

Grammar of part one: a line `[goalkeeper 1/2: …]`, then entries `Title (turn N):`, perhaps a line `In answer to …`, the
words in a fence, perhaps a line `No longer valid in it: "…"`; last, lines `No longer valid: the goal of turn N …`.
Part two runs from `[goalkeeper 2/2: …]` to `[goalkeeper: end of record]`; fences in it are stepped over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

PART_ONE = "[goalkeeper 1/2"
PART_TWO = "[goalkeeper 2/2"
END = "[goalkeeper: end of record]"
GOAL = "Current goal"
_HEADING = re.compile(r"([A-Z][A-Za-z ]*) \((?:turn (\d+)|added by the user)\):")
_FENCE = re.compile(r"`{3,}")
_FALLEN = re.compile(r'No longer valid in it: "(.*)" \(')
_ENDED = re.compile(r"No longer valid: the (\w+) of turn (\d+)")


@dataclass(slots=True)
class Words:
    """One entry of part one."""

    title: str
    turn: str
    text: str


@dataclass(slots=True)
class Block:
    """What the inserted texts of one body show of the user's words."""

    part_one: str = ""
    words: list[Words] = field(default_factory=list)
    ended: list[tuple[str, str]] = field(default_factory=list)  # ("goal" | "word", turn)

    @property
    def current_goal(self) -> str | None:
        """The newest goal that no later line withdraws, None when the blocks show none."""
        goals = [one for one in self.words if one.title == GOAL and ("goal", one.turn) not in self.ended]
        return goals[-1].text if goals else None

    @property
    def active_corrections(self) -> str:
        """All other words that hold, one after the other."""
        others = [one for one in self.words if one.title != GOAL and ("word", one.turn) not in self.ended]
        return "\n".join(one.text for one in others)


def read_blocks(texts: Sequence[str]) -> Block | None:
    """Reads all blocks of a body's user texts, oldest first; None when there is none."""
    block = Block()
    found = False
    for text in texts:
        lines = iter(text.split("\n"))
        for line in lines:
            if line.startswith(PART_TWO):
                _skip_record(lines)
                found = True
            elif line.startswith(PART_ONE):
                _read_part_one(line, lines, block)
                found = True
    return block if found else None


def _read_part_one(head: str, lines: Iterator[str], block: Block) -> None:
    seen = [head]
    for line in lines:
        if line.startswith(PART_TWO):
            _skip_record(lines)
            break
        heading = _HEADING.fullmatch(line)
        if heading is not None:
            seen.append(line)
            block.words.append(Words(heading[1], heading[2] or "", _words(lines, seen)))
        elif not _note(line, block):
            break
        else:
            seen.append(line)
    block.part_one += "\n".join(seen) + "\n"


def _note(line: str, block: Block) -> bool:
    """Takes in a line about words that no longer hold; tells whether the line belongs to part one at all."""
    fallen, ended = _FALLEN.match(line), _ENDED.match(line)
    if ended is not None:
        block.ended.append((ended[1], ended[2]))
    elif fallen is not None and block.words:
        gone = r"\s+".join(re.escape(word) for word in fallen[1].rstrip("…").split())
        block.words[-1].text = re.sub(gone, "", block.words[-1].text, count=1)
    return ended is not None or fallen is not None or line.startswith("Withdrawn by the user:")


def _words(lines: Iterator[str], seen: list[str]) -> str:
    """Reads the fenced words of an entry."""
    text: list[str] = []
    for line in lines:
        seen.append(line)
        fence = _FENCE.fullmatch(line)
        if fence is not None:
            text.extend(_until_fence(lines, fence[0]))
            seen.extend((*text, fence[0]))
            break
    return "\n".join(text)


def _until_fence(lines: Iterator[str], fence: str) -> Iterator[str]:
    for line in lines:
        if line == fence:
            return
        yield line


def _skip_record(lines: Iterator[str]) -> None:
    for line in lines:
        if line.startswith(END):
            return
        fence = _FENCE.fullmatch(line)
        if fence is not None:
            for _ in _until_fence(lines, fence[0]):
                pass
