"""Reads rule files: YAML with the place of every key, each mistake reported where it stands."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, cast

import yaml

from proxy.pins.model import Kind, Scope
from proxy.pins.patience import nested_quantifier
from proxy.pins.regexps import FLAGS, Matcher, Subject, any_matches, compile_patterns
from proxy.pins.rule import ACTS, BINDING, PASSING, SCOPES, Rule

KEYS = (
    "name", "kind", "label", "scope", "priority", "patterns", "not", "flags", "roles", "clients", "examples"
)  # fmt: skip
MAX_PATTERN = 4000  # characters


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake: where it stands, what is wrong, what was probably meant."""

    place: str  # file:line:column, "" for an inline rule
    key: str  # key path, such as rules[0].patterns[1]
    message: str
    suggestion: str = ""

    def __str__(self) -> str:
        parts = [part for part in (self.place, self.key) if part]
        text = ": ".join([*parts, self.message])
        return f"{text}; {self.suggestion}" if self.suggestion else text


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed file: its value, and the place of each key path."""

    value: Any
    file: str = ""
    prefix: str = ""  # stands before key paths of inline rules
    places: Mapping[str, str] = field(default_factory=dict)
    broken: Problem | None = None

    def place(self, key: str) -> str:
        """Gives file:line:column of a key path, or of the nearest one around it."""
        while key:
            if key in self.places:
                return self.places[key]
            key = re.sub(r"(?:\.?[^.\[\]]+|\[\d+\])$", "", key)
        return f"{self.file}:1:1" if self.file else ""


def _walk(node: yaml.Node, key: str, file: str, places: dict[str, str]) -> None:
    places[key] = f"{file}:{node.start_mark.line + 1}:{node.start_mark.column + 1}"
    if isinstance(node, yaml.MappingNode):
        for name, value in node.value:
            path = f"{key}.{name.value}" if key else str(name.value)
            _walk(value, path, file, places)
            # A wrong key is pointed at by its own name, not by its value.
            places[path + "="] = f"{file}:{name.start_mark.line + 1}:{name.start_mark.column + 1}"
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            _walk(value, f"{key}[{index}]", file, places)


def read_yaml(path: Path) -> Document:
    """Reads one YAML file; what keeps it from being read stands in `broken`."""
    file = str(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        return Document(None, file, broken=Problem(file, "", f"can't be read: {reason}"))
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
    try:
        node = loader.get_single_node()
        value = loader.construct_document(node) if node is not None else None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"{file}:{mark.line + 1}:{mark.column + 1}" if mark else file
        return Document(None, file, broken=Problem(place, "", f"isn't valid YAML: {error.problem}"))
    except yaml.YAMLError as error:
        return Document(None, file, broken=Problem(file, "", f"isn't valid YAML: {error}"))
    finally:
        loader.dispose()
    places: dict[str, str] = {}
    if node is not None:
        _walk(node, "", file, places)
    return Document(value, file, places=places)


def _meant(word: object, known: Sequence[str]) -> str:
    close = get_close_matches(str(word).lower(), known, n=1, cutoff=0.6)
    return f"did you mean {close[0]!r}?" if close else f"one of: {', '.join(known)}"


@dataclass(slots=True)
class RuleReader:
    """Turns documents into rules and collects what is wrong with them."""

    rules: list[Rule] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)

    def take(self, document: Document) -> None:
        """Reads all rules of a document."""
        if document.broken:
            self.problems.append(document.broken)
            return
        value = document.value if document.value is not None else {}
        if not isinstance(value, Mapping):
            self._problem(document, "", "must be a mapping with the key 'rules'")
            return
        for key in value:
            if key != "rules":
                self._problem(document, f"{key}=", f"unknown key {key!r}", "the only key is 'rules'")
        rules = value.get("rules") or []
        if not isinstance(rules, list):
            self._problem(document, "rules", "must be a list of rules")
            return
        for index, item in enumerate(rules):
            self._rule(document, f"rules[{index}]", item)

    def _problem(self, document: Document, key: str, message: str, suggestion: str = "") -> None:
        place = document.place(key)
        self.problems.append(Problem(place, document.prefix + key.removesuffix("="), message, suggestion))

    def _rule(self, document: Document, key: str, item: object) -> None:
        if not isinstance(item, Mapping):
            self._problem(document, key, "must be a mapping", "a rule has at least name, kind and patterns")
            return
        before = len(self.problems)
        for name in item:
            if name not in KEYS:
                self._problem(document, f"{key}.{name}=", f"unknown key {name!r}", _meant(name, KEYS))
        name = self._name(document, key, item)
        kind, label = self._kind(document, key, item)
        scope = self._word(document, f"{key}.scope", item.get("scope", "session"), SCOPES)
        priority = item.get("priority", 50)
        if not isinstance(priority, int) or isinstance(priority, bool):
            self._problem(document, f"{key}.priority", f"must be a whole number, got {priority!r}")
            priority = 50
        flags = self._flags(document, f"{key}.flags", item.get("flags", "i"))
        matchers = self._patterns(document, f"{key}.patterns", item.get("patterns"), flags, needed=True)
        exceptions = self._patterns(document, f"{key}.not", item.get("not"), flags, needed=False)
        roles = self._texts(document, f"{key}.roles", item.get("roles"))
        for index, role in enumerate(roles):
            self._word(document, f"{key}.roles[{index}]", role, ("user", "tool"))
        clients = self._texts(document, f"{key}.clients", item.get("clients"))
        match, no_match = self._examples(document, f"{key}.examples", item.get("examples"))
        if len(self.problems) > before:
            return
        self.rules.append(
            Rule(
                name, cast("Kind | None", kind), label, cast("Scope", scope), priority, matchers, exceptions,
                roles, clients, match, no_match, document.place(key) or document.prefix + key,
            )
        )  # fmt: skip

    def _name(self, document: Document, key: str, item: Mapping[str, object]) -> str:
        name = item.get("name")
        if not isinstance(name, str) or not name.strip():
            self._problem(document, f"{key}.name", "is missing", "give each rule a name that receipts can show")
            return ""
        if name in self.names:
            self._problem(document, f"{key}.name", f"{name!r} is taken by the rule at {self.names[name]}")
        self.names[name] = document.place(key) or document.prefix + key
        return name

    def _kind(self, document: Document, key: str, item: Mapping[str, object]) -> tuple[str | None, str]:
        label = item.get("label", "")
        if label and label not in PASSING + ACTS + ("goal_change",):
            self._problem(
                document, f"{key}.label", f"{label!r} is not a label", _meant(label, PASSING + ACTS + ("goal_change",))
            )
        kind = item.get("kind")
        if kind is None and label in ACTS:
            return None, str(label)
        if kind is None:
            self._problem(document, f"{key}.kind", "is missing", f"one of: {', '.join((*BINDING, 'history'))}")
            return None, ""
        self._word(document, f"{key}.kind", kind, (*BINDING, "history"))
        if kind == "history" and label not in PASSING:
            self._problem(document, f"{key}.label", "history needs a label", f"one of: {', '.join(PASSING)}")
        if kind != "history" and label in PASSING:
            self._problem(document, f"{key}.label", f"{label!r} is a label of history, the kind is {kind!r}")
        return (None if kind == "history" else str(kind)), str(label or kind)

    def _word(self, document: Document, key: str, word: object, known: Sequence[str]) -> str:
        if word not in known:
            self._problem(document, key, f"{word!r} is not known here", _meant(word, known))
        return str(word)

    def _flags(self, document: Document, key: str, flags: object) -> str:
        if not isinstance(flags, str) or not set(flags) <= set(FLAGS):
            self._problem(document, key, f"{flags!r} must be letters out of {''.join(FLAGS)}")
            return "i"
        return flags

    def _texts(self, document: Document, key: str, value: object) -> tuple[str, ...]:
        if value is None:
            return ()
        values = [value] if isinstance(value, str) else value
        if not isinstance(values, list) or not all(isinstance(text, str) for text in values):
            self._problem(document, key, "must be a text or a list of texts", "put the text in single quotes")
            return ()
        return tuple(values)

    def _patterns(
        self, document: Document, key: str, value: object, flags: str, *, needed: bool
    ) -> tuple[Matcher, ...]:
        patterns = self._texts(document, key, value)
        if needed and not patterns and not isinstance(value, list | str):
            self._problem(document, key, "is missing", "give at least one regular expression")
            return ()
        before = len(self.problems)
        for index, pattern in enumerate(patterns):
            self._pattern(document, key if isinstance(value, str) else f"{key}[{index}]", pattern)
        if len(self.problems) > before:
            return ()
        try:
            matchers = compile_patterns(patterns, flags)
        except (re.error, RecursionError, OverflowError):
            matchers = ()
        if not matchers or any_matches(matchers, Subject.of("")):
            for index, pattern in enumerate(patterns):
                self._blame(document, key if isinstance(value, str) else f"{key}[{index}]", pattern)
        return matchers

    def _pattern(self, document: Document, key: str, pattern: str) -> None:
        if not pattern or len(pattern) > MAX_PATTERN:
            self._problem(document, key, f"a pattern has 1 to {MAX_PATTERN} characters, not {len(pattern)}")
            return
        nested = nested_quantifier(pattern)
        if nested:
            message = f"{nested!r} repeats a repetition, which can take for ever on some texts"
            self._problem(document, key, message, "drop the inner or the outer quantifier")

    def _blame(self, document: Document, key: str, pattern: str) -> None:
        """Says what is wrong with a pattern of a set that doesn't compile; patterns are compiled one by one only here."""
        try:
            compiled = re.compile(pattern)
        except re.error as error:
            at = f" at character {error.pos + 1}" if error.pos is not None else ""
            self._problem(document, key, f"{pattern!r} is no regular expression: {error.msg}{at}", _remedy(error.msg))
            return
        except (RecursionError, OverflowError) as error:
            self._problem(document, key, f"the pattern is too large: {error}")
            return
        if compiled.search(""):
            self._problem(document, key, f"{pattern!r} matches even an empty text", "make a part of it required")

    def _examples(self, document: Document, key: str, value: object) -> tuple[tuple[str, ...], tuple[str, ...]]:
        if value is None:
            return (), ()
        if not isinstance(value, Mapping):
            self._problem(document, key, "must be a mapping", "with the keys 'match' and 'no_match'")
            return (), ()
        for name in value:
            if name not in ("match", "no_match"):
                self._problem(document, f"{key}.{name}=", f"unknown key {name!r}", _meant(name, ("match", "no_match")))
        match = self._texts(document, f"{key}.match", value.get("match"))
        return match, self._texts(document, f"{key}.no_match", value.get("no_match"))


def _remedy(message: str) -> str:
    if "parenthesis" in message or "unterminated subpattern" in message:
        return r"close the bracket, or write \( for the character itself"
    if "nothing to repeat" in message or "multiple repeat" in message:
        return r"put something before the quantifier, or write \* for the character itself"
    if "character set" in message or "character range" in message:
        return r"close the set with ], or write \[ for the character itself"
    return "see the syntax of Python's re module"
