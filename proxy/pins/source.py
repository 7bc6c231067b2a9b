"""YAML files with the place of every key, so that each mistake is reported where it stands."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import yaml


class Problem(msgspec.Struct, frozen=True):
    """One mistake: where it stands, what is wrong, what was probably meant."""

    place: str  # file:line:column, "" for an inline rule
    key: str  # key path, such as rules[0].patterns[1]
    message: str
    suggestion: str = ""

    def __str__(self) -> str:
        parts = [part for part in (self.place, self.key) if part]
        text = ": ".join([*parts, self.message])
        return f"{text}; {self.suggestion}" if self.suggestion else text


class Document(msgspec.Struct, frozen=True):
    """A parsed file: its value, and the place of each key path."""

    value: Any
    file: str = ""
    prefix: str = ""  # stands before key paths of inline rules
    places: Mapping[str, str] = {}
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
