"""Pin rules: what a rule file may say, read with exact complaints, compiled once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from proxy.errors import ConfigError
from proxy.pins.reading import RuleReader
from proxy.pins.rule import Rule
from proxy.pins.source import Document, Problem, read_yaml


class RuleSet(msgspec.Struct, frozen=True, eq=False):
    """All rules in force, the highest priority first; compared by identity, so that verdicts can be cached."""

    rules: tuple[Rule, ...] = ()
    marker: str = "!"  # what opens `!pin` and `!unpin`


def read_rules(
    files: Sequence[Path], inline: Sequence[Mapping[str, Any]] = (), *, marker: str = "!"
) -> tuple[RuleSet, tuple[Problem, ...]]:
    """Reads rule files and inline rules; gives the good rules and every problem, in the order of the files."""
    reader = RuleReader()
    for file in files:
        reader.take(read_yaml(file))
    reader.take(Document({"rules": list(inline)}, prefix="pins."))
    return RuleSet(tuple(sorted(reader.rules, key=lambda rule: -rule.priority)), marker), tuple(reader.problems)


def load_rules(files: Sequence[Path], inline: Sequence[Mapping[str, Any]] = (), *, marker: str = "!") -> RuleSet:
    """Reads rule files and inline rules. Raises ConfigError that lists every problem with its place."""
    rules, problems = read_rules(files, inline, marker=marker)
    if problems:
        raise ConfigError("\n".join(str(problem) for problem in problems))
    return rules
