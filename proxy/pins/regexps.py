"""Compiles the regular expressions of rules so that a turn meets only those that can match its script."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntFlag

FLAGS = {"i": re.IGNORECASE, "s": re.DOTALL, "m": re.MULTILINE}
_ESCAPE = re.compile(r"\\.|\(\?[a-zA-Z<]", re.DOTALL)
_QUANTIFIER = re.compile(r"[*+]|\{\d*,\}")


class Script(IntFlag):
    """Writing systems that a text or a pattern holds; a pattern of one script can't match a text without it."""

    NONE = 0
    HAN = 1
    KANA = 2
    HANGUL = 4
    CYRILLIC = 8
    ARABIC = 16


_SCRIPTS = (
    (Script.HAN, re.compile("[\u3400-\u9fff]")),
    (Script.KANA, re.compile("[\u3040-\u30ff]")),
    (Script.HANGUL, re.compile("[\uac00-\ud7af]")),
    (Script.CYRILLIC, re.compile("[\u0400-\u04ff]")),
    (Script.ARABIC, re.compile("[\u0600-\u06ff]")),
)


def scripts_of(text: str) -> Script:
    """Gives the writing systems in a text, Latin letters and digits left out."""
    found = Script.NONE
    if text.isascii():
        return found
    for script, pattern in _SCRIPTS:
        if pattern.search(text):
            found |= script
    return found


@dataclass(frozen=True, slots=True)
class Subject:
    """A text made ready for matching: as written, in lower case, and its scripts."""

    text: str
    lower: str
    scripts: Script

    @classmethod
    def of(cls, text: str) -> Subject:
        """Prepares a text once for all rules."""
        return cls(text, text.lower(), scripts_of(text))


@dataclass(frozen=True, slots=True)
class Matcher:
    """Several patterns of one script in one expression."""

    script: Script  # the text must hold one of these; NONE = any text
    lower: bool  # whether it runs on the lower-case text
    pattern: re.Pattern[str]

    def matches(self, subject: Subject) -> bool:
        """Tells whether one of the patterns occurs in the text."""
        if self.script and not self.script & subject.scripts:
            return False
        return self.pattern.search(subject.lower if self.lower else subject.text) is not None


def _has_capitals(pattern: str) -> bool:
    return any(char.isupper() for char in _ESCAPE.sub("", pattern))


def compile_patterns(patterns: Sequence[str], flags: str = "i") -> tuple[Matcher, ...]:
    """Joins patterns into few expressions. Raises re.error."""
    value = re.UNICODE
    for letter in flags:
        value |= FLAGS[letter]
    groups: dict[tuple[Script, bool], list[str]] = {}
    single: list[Matcher] = []
    for pattern in patterns:
        # Without IGNORECASE an expression can skip to its first letters, which is several times faster.
        lower = "i" in flags and not _has_capitals(pattern)
        own = value & ~re.IGNORECASE if lower else value
        script = scripts_of(pattern)
        if re.search(r"\((?!\?)|\(\?P|^\(\?[a-z]", pattern):  # groups would be renumbered, flags must stand first
            single.append(Matcher(script, lower, re.compile(pattern, own)))
        else:
            groups.setdefault((script, lower), []).append(pattern)
    for (script, lower), members in groups.items():
        own = value & ~re.IGNORECASE if lower else value
        single.append(Matcher(script, lower, re.compile("|".join(f"(?:{member})" for member in members), own)))
    return tuple(single)


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
