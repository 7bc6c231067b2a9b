"""Refuses regular expressions that could take for ever."""

from __future__ import annotations

import re

_QUANTIFIER = re.compile(r"[*+]|\{\d*,\}")


def nested_quantifier(pattern: str) -> str:
    """Gives the first group that repeats without bound something that itself repeats without bound, "" without one."""
    opened: list[tuple[int, bool]] = []  # start of each open group, and whether it holds an unbounded quantifier
    repeats = False
    in_class = False
    index = 0
    while index < len(pattern):
        char = pattern[index]
        if char == "\\":
            index += 2
            continue
        if in_class:
            in_class = char != "]"
        elif char == "[":
            in_class = True
            index += pattern[index + 1 : index + 3] == "^]" or pattern[index + 1 : index + 2] == "]"
        elif char == "(":
            opened.append((index, repeats))
            repeats = False
        elif char == ")" and opened:
            start, outer = opened.pop()
            if repeats and _QUANTIFIER.match(pattern, index + 1):
                return pattern[start : index + 2]
            repeats = repeats or outer
        elif _QUANTIFIER.match(pattern, index):
            repeats = True
        index += 1
    return ""
