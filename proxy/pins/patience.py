"""Refuses regular expressions that could take for ever."""

from __future__ import annotations

import re

_TOKEN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[()]|[*+]|\{\d*,\}|.", re.DOTALL)
_UNBOUNDED = re.compile(r"[*+]|\{\d*,\}")


def nested_quantifier(pattern: str) -> str:
    """Gives the first group that repeats without bound something that itself repeats without bound, "" without one."""
    opened: list[tuple[int, bool]] = []  # start of each open group, and whether what is around it repeats
    repeats = False
    for token in _TOKEN.finditer(pattern):
        if token[0] == "(":
            opened.append((token.start(), repeats))
            repeats = False
        elif token[0] == ")" and opened:
            start, around = opened.pop()
            if repeats and _UNBOUNDED.match(pattern, token.end()):
                return pattern[start : token.end() + 1]
            repeats = repeats or around
        elif _UNBOUNDED.fullmatch(token[0]):
            repeats = True
    return ""
