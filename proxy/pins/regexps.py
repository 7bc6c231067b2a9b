"""Compiles the regular expressions of rules so that a turn meets only those that can match its script."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import msgspec

from proxy.pins.phrases import comparable

FLAGS = {"i": re.IGNORECASE, "s": re.DOTALL, "m": re.MULTILINE}
_ESCAPE = re.compile(r"\\.|\(\?[a-zA-Z<]", re.DOTALL)
_OWN_GROUPS = re.compile(r"\((?!\?)|\(\?P|^\(\?[a-z]|\\[1-9]")
_OPENING = re.compile(r"\((?:\?(?:P<\w+>|[a-zA-Z-]*:|[=!]|<[=!])?)?")
_OPTIONAL = re.compile(r"[*?]|\{0?,")


# Writing systems as bits (plain integers: operations on enum flags cost more than a whole search).
Script = int
NONE, HAN, KANA, HANGUL, CYRILLIC, ARABIC = 0, 1, 2, 4, 8, 16
_SCRIPTS = (
    (HAN, re.compile("[\u3400-\u9fff]")),
    (KANA, re.compile("[\u3040-\u30ff]")),
    (HANGUL, re.compile("[\uac00-\ud7af]")),
    (CYRILLIC, re.compile("[\u0400-\u04ff]")),
    (ARABIC, re.compile("[\u0620-\u064a]")),
)


def scripts_of(text: str) -> Script:
    """Gives the writing systems in a text, Latin letters and digits left out."""
    found = NONE
    if text.isascii():
        return found
    for script, pattern in _SCRIPTS:
        if pattern.search(text):
            found |= script
    return found


class Subject(msgspec.Struct, frozen=True):
    """A text made ready for matching: as written, in lower case, its scripts, and as phrases are compared."""

    text: str
    lower: str
    scripts: Script
    said: str

    @classmethod
    def of(cls, text: str) -> Subject:
        """Prepares a text once for all rules."""
        lower = text.lower()
        return cls(text, lower, scripts_of(text), comparable(lower))


class Matcher(msgspec.Struct, frozen=True):
    """Several patterns of one script and one kind of beginning in one expression."""

    script: Script  # the text must hold one of these; NONE = any text
    lower: bool  # whether it runs on the lower-case text
    pattern: re.Pattern[str]
    probe: Callable[[str], object]  # pattern.match when it can match at the beginning only, else pattern.search


def any_matches(matchers: tuple[Matcher, ...], subject: Subject) -> bool:
    """Tells whether a pattern of one of the matchers occurs in the text."""
    scripts = subject.scripts
    for matcher in matchers:
        if matcher.script and not matcher.script & scripts:
            continue
        if matcher.probe(subject.lower if matcher.lower else subject.text):
            return True
    return False


def first_match(matchers: tuple[Matcher, ...], subject: Subject) -> str:
    """Gives the words on which the first of the matchers speaks, as they were written; "" when none does."""
    for matcher in matchers:
        found = matcher.pattern.search(subject.lower if matcher.lower else subject.text)
        if found and (not matcher.script or matcher.script & subject.scripts):
            return subject.text[found.start() : found.end()].strip()
    return ""


def script_gate(pattern: str) -> Script:
    """Gives scripts of which every match holds at least one; NONE when a text without them may match too."""
    gate, _ = _gate(pattern, 0)
    return gate


def _gate(pattern: str, at: int) -> tuple[Script, int]:
    """Reads alternatives up to the closing bracket; a gate holds only when every alternative has one."""
    gates: list[Script] = []
    current = NONE
    while at < len(pattern) and pattern[at] != ")":
        if pattern[at] == "|":
            gates.append(current)
            current = NONE
            at += 1
            continue
        found, at = _atom(pattern, at)
        current = current or found
    gates.append(current)
    whole = NONE
    for gate in gates:
        if not gate:
            return NONE, at
        whole |= gate
    return whole, at


def _atom(pattern: str, at: int) -> tuple[Script, int]:
    """Reads one character, class or group with its quantifier."""
    char = pattern[at]
    found = NONE
    if char == "\\":
        at += 2
    elif char == "[":
        at = _class_end(pattern, at)
    elif char == "(":
        ahead = _OPENING.match(pattern, at)
        opening = ahead[0] if ahead else "("
        found, at = _gate(pattern, at + len(opening))
        at += 1
        if opening.endswith(("=", "!")):
            found = NONE
    else:
        found = NONE if char.isascii() else scripts_of(char)
        at += 1
    if found and _OPTIONAL.match(pattern, at):
        found = NONE
    return found, at


def _has_capitals(pattern: str) -> bool:
    return any(char.isupper() for char in _ESCAPE.sub("", pattern))


def alternatives(pattern: str) -> list[str]:
    """Splits a pattern at its outermost bars."""
    found, start, at, depth = [], 0, 0, 0
    while at < len(pattern):
        char = pattern[at]
        if char == "[":
            at = _class_end(pattern, at)
            continue
        depth += (char == "(") - (char == ")")
        if char == "|" and depth == 0:
            found.append(pattern[start:at])
            start = at + 1
        at += 2 if char == "\\" else 1
    return [*found, pattern[start:]]


def _class_end(pattern: str, at: int) -> int:
    start = at + (3 if pattern[at + 1 : at + 2] == "^" else 2)
    while start < len(pattern) and pattern[start] != "]":
        start += 2 if pattern[start] == "\\" else 1
    return start + 1


def compile_patterns(patterns: Sequence[str], flags: str = "i") -> tuple[Matcher, ...]:
    """Joins patterns into few expressions: by script, by case, and by how they begin. Raises re.error."""
    value = re.UNICODE
    for letter in flags:
        value |= FLAGS[letter]
    groups: dict[tuple[Script, bool, str], list[str]] = {}
    found: list[Matcher] = []
    for pattern in patterns:
        lower = "i" in flags and not _has_capitals(pattern)
        if _OWN_GROUPS.search(pattern):  # they would be renumbered by a join, and flags must stand first
            alone = re.compile(pattern, value & ~re.IGNORECASE if lower else value)
            found.append(Matcher(script_gate(pattern), lower, alone, alone.search))
            continue
        for part in alternatives(pattern):
            start = _begins(part, flags)
            groups.setdefault((script_gate(part), lower, start), []).append(part[len(start) :])
    for (script, lower, start), members in groups.items():
        # Without IGNORECASE an expression finds its first letters faster; a common start is tried once for all.
        own = value & ~re.IGNORECASE if lower else value
        joined = re.compile(start + "(?:" + "|".join(members) + ")", own)
        found.append(Matcher(script, lower, joined, joined.match if start.startswith("^") else joined.search))
    return tuple(found)


def _begins(part: str, flags: str) -> str:
    """Gives the beginning that a part shares with others of its kind."""
    if part.startswith("^") and "m" not in flags:
        return r"^\W*" if part.startswith(r"^\W*") else "^"
    return r"\b" if part.startswith(r"\b") else ""
