"""Reads the rules of rule files and of settings; each mistake is collected with its place."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, cast

from proxy.pins.model import Kind, Scope
from proxy.pins.patience import nested_quantifier
from proxy.pins.phrases import SEPARATOR, Phrases
from proxy.pins.regexps import FLAGS, Matcher, Subject, any_matches, compile_patterns
from proxy.pins.rule import ACTS, BINDING, PASSING, SCOPES, Example, Rule
from proxy.pins.source import Document, Problem

KEYS = [
    "name",
    "kind",
    "label",
    "scope",
    "priority",
    "phrases",
    "beside",
    "patterns",
    "not",
    "flags",
    "roles",
    "clients",
    "examples",
]
KINDS = (*BINDING, "history")
LABELS = (*PASSING, *ACTS, "goal_change")
_MOST = 4000  # characters of a pattern


@dataclass(slots=True)
class RuleReader:
    """Collects rules, document after document, and what is wrong with them."""

    rules: list[Rule] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def take(self, document: Document) -> None:
        """Adds the rules of a document; one with the name of an earlier document's rule replaces that rule."""
        if document.broken:
            self.problems.append(document.broken)
            return
        found: dict[str, Rule] = {}
        for index, item in enumerate(self._items(document)):
            reading = _Reading(document, f"rules[{index}]", item, self.problems)
            rule = reading.rule()
            if rule and rule.name in found:
                reading.problem("name", f"{rule.name!r} is taken by the rule at {found[rule.name].place}")
            elif rule:
                found[rule.name] = rule
        self.rules = [rule for rule in self.rules if rule.name not in found] + list(found.values())

    def _items(self, document: Document) -> Sequence[object]:
        value = document.value if document.value is not None else {}
        if not isinstance(value, Mapping):
            self.problems.append(Problem(document.place(""), "", "must be a mapping with the key 'rules'"))
            return ()
        for key in value:
            if key != "rules":
                place = document.place(f"{key}=")
                self.problems.append(Problem(place, str(key), f"unknown key {key!r}", "the only key is 'rules'"))
        rules = value.get("rules") or []
        if isinstance(rules, list):
            return rules
        self.problems.append(Problem(document.place("rules"), "rules", "must be a list of rules"))
        return ()


@dataclass(slots=True)
class _Reading:
    """One rule while it is read."""

    document: Document
    key: str
    item: Any
    problems: list[Problem]

    def problem(self, key: str, message: str, suggestion: str = "") -> None:
        """Reports a mistake under a key of the rule; a trailing `=` points at the key itself, not at its value."""
        path = f"{self.key}.{key}" if key else self.key
        place = self.document.place(path)
        self.problems.append(Problem(place, self.document.prefix + path.removesuffix("="), message, suggestion))

    def rule(self) -> Rule | None:
        """Gives the rule, None when something is wrong with it."""
        before = len(self.problems)
        if not isinstance(self.item, Mapping):
            self.problem("", "must be a mapping", "a rule has at least name, kind and patterns")
            return None
        for key in self.item:
            if key not in KEYS:
                self.problem(f"{key}=", f"unknown key {key!r}", _meant(key, KEYS))
        kind, label = self._kind()
        flags = self._flags()
        rule = Rule(
            name=self._name(),
            kind=cast("Kind | None", kind),
            label=label,
            scope=cast("Scope", self._word("scope", self.item.get("scope", "session"), SCOPES)),
            priority=self._priority(),
            matchers=self._patterns("patterns", flags),
            exceptions=self._patterns("not", flags),
            roles=tuple(
                self._word(f"roles[{index}]", role, ("user", "tool")) for index, role in enumerate(self._texts("roles"))
            ),
            clients=self._texts("clients"),
            match=self._examples("match"),
            no_match=self._examples("no_match"),
            place=self.document.place(self.key) or self.document.prefix + self.key,
            phrases=self._phrases(),
        )
        return rule if len(self.problems) == before else None

    def _name(self) -> str:
        name = self.item.get("name")
        if isinstance(name, str) and name.strip():
            return name
        self.problem("name", "is missing", "give each rule a name that people will read in `pins list`")
        return ""

    def _priority(self) -> int:
        priority = self.item.get("priority", 50)
        if isinstance(priority, int) and not isinstance(priority, bool):
            return priority
        self.problem("priority", f"must be a whole number, not {priority!r}")
        return 50

    def _kind(self) -> tuple[str | None, str]:
        kind, label = self.item.get("kind"), self.item.get("label", "")
        if label:
            self._word("label", label, LABELS)
        if kind is None:
            if label not in ACTS:
                self.problem("kind", "is missing", f"one of: {', '.join(KINDS)}")
            return None, str(label)
        self._word("kind", kind, KINDS)
        if kind == "history" and label not in PASSING:
            self.problem("label", "history needs a label", f"one of: {', '.join(PASSING)}")
        if kind != "history" and label in PASSING:
            self.problem("label", f"{label!r} is a label of history, but the kind is {kind!r}")
        return (None if kind == "history" else str(kind)), str(label or kind)

    def _word(self, key: str, word: object, known: Sequence[str]) -> str:
        if word not in known:
            self.problem(key, f"{word!r} is not known here", _meant(word, known))
        return str(word)

    def _flags(self) -> str:
        flags = self.item.get("flags", "i")
        if isinstance(flags, str) and set(flags) <= set(FLAGS):
            return flags
        self.problem("flags", f"must be letters out of {', '.join(FLAGS)}, not {flags!r}")
        return "i"

    def _texts(self, key: str) -> tuple[str, ...]:
        """Reads a text or a list of texts; `examples.match` reads inside of `examples`."""
        value: Any = self.item
        for name in key.split("."):
            value = value.get(name) if isinstance(value, Mapping) else None
        if value is None:
            return ()
        values = [value] if isinstance(value, str) else value
        if isinstance(values, list):  # an alias of another list may stand inside a list
            values = [text for item in values for text in (item if isinstance(item, list) else [item])]
        if isinstance(values, list) and all(isinstance(text, str) for text in values):
            return tuple(values)
        self.problem(key, "must be a text or a list of texts", "put each text in single quotes")
        return ()

    def _phrases(self) -> Phrases | None:
        own, beside = self._texts("phrases"), self._texts("beside")
        if beside and not own:
            self.problem("beside", "needs 'phrases'", "phrases beside which these may stand")
        found = Phrases.of(own, beside)
        if own and not found.own:
            self.problem("phrases", "holds no word", f"write phrases with {SEPARATOR!r} between them")
        return found if own else None

    def _patterns(self, key: str, flags: str) -> tuple[Matcher, ...]:
        patterns = self._texts(key)
        if not patterns:
            if key == "patterns" and self.item.get(key) in (None, []) and not self.item.get("phrases"):
                self.problem(key, "is missing", "give at least one regular expression")
            return ()
        before = len(self.problems)
        try:
            matchers = compile_patterns(patterns, flags)
        except (re.error, RecursionError, OverflowError):
            matchers = ()
        sound = bool(matchers) and not any_matches(matchers, Subject.of(""))
        for index, pattern in enumerate(patterns):
            path = key if isinstance(self.item.get(key), str) else f"{key}[{index}]"
            self._pattern(path, pattern, compiles=sound)
        return matchers if len(self.problems) == before else ()

    def _pattern(self, key: str, pattern: str, *, compiles: bool) -> None:
        """Says what is wrong with one pattern; it is compiled alone only when the set didn't compile."""
        wrong = None if compiles else _fault(pattern)
        nested = nested_quantifier(pattern)
        if wrong:
            self.problem(key, *wrong)
        elif not pattern or len(pattern) > _MOST:
            self.problem(key, f"a pattern has 1 to {_MOST} characters, not {len(pattern)}")
        elif nested:
            message = f"{nested!r} repeats a repetition, which can take for ever on some texts"
            self.problem(key, message, "drop the inner or the outer quantifier")

    def _examples(self, name: str) -> tuple[Example, ...]:
        value = self.item.get("examples", {})
        if not isinstance(value, Mapping) or not set(value) <= {"match", "no_match"}:
            if name == "match":
                self.problem("examples", "must hold 'match' and 'no_match' and nothing else")
            return ()
        texts = self._texts(f"examples.{name}")
        path = f"{self.key}.examples.{name}"
        places = (self.document.place(f"{path}[{index}]") for index in range(len(texts)))
        return tuple(
            Example(text, place or f"{self.document.prefix}{path}[{index}]")
            for index, (text, place) in enumerate(zip(texts, places, strict=True))
        )


def _meant(word: object, known: Sequence[str]) -> str:
    close = get_close_matches(str(word).lower(), known, n=1, cutoff=0.6)
    return f"did you mean {close[0]!r}?" if close else f"one of: {', '.join(known)}"


def _fault(pattern: str) -> tuple[str, str] | None:
    """Gives what keeps a pattern from being used, and the remedy."""
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        at = f" at character {error.pos + 1}" if error.pos is not None else ""
        return f"{pattern!r} is no regular expression: {error.msg}{at}", _remedy(error.msg)
    except (RecursionError, OverflowError) as error:
        return f"the pattern is too large: {error}", "split it"
    if compiled.search(""):
        return f"{pattern!r} matches even an empty text", "make a part of it required"
    return None


def _remedy(message: str) -> str:
    if "parenthesis" in message or "unterminated subpattern" in message:
        return r"close the bracket, or write \( for the character itself"
    if "nothing to repeat" in message or "multiple repeat" in message:
        return r"put something before the quantifier, or write \* for the character itself"
    if "character set" in message or "character range" in message:
        return r"close the set with ], or write \[ for the character itself"
    return "see the syntax of Python's re module"
