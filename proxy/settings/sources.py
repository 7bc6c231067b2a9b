"""Where settings come from: YAML files, the environment and flags, each value with its place of origin."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import msgspec
import yaml
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource

from proxy.errors import ConfigError

PREFIX = "GOALKEEPER_"
SHORT_NAMES = {
    "HOST": ("server", "host"),
    "PORT": ("server", "port"),
    "TOKEN": ("server", "token"),
    "UPSTREAM": ("upstream", "url"),
    "DATA": ("data",),
}
NOT_SETTINGS = frozenset({"CONFIG", "SEAL_KEY"})  # read elsewhere

Path_ = tuple[str | int, ...]
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml where it was built in: ten times faster


class Source(msgspec.Struct, frozen=True):
    """One layer of settings, and where each of its keys stands."""

    name: str
    values: Mapping[str, Any]
    places: Mapping[Path_, str]  # key path → "file.yaml:12", "GOALKEEPER_PORT" or "--port"
    folder: Path | None = None


def dotted(path: Path_) -> str:
    """Writes a key path as people write it: `pins.rules[0].kind`."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.removeprefix(".")


def did_you_mean(word: str, known: list[str]) -> str:
    """Gives a suggestion with a leading comma, or nothing when no known word is near."""
    near = get_close_matches(word, known, n=1, cutoff=0.5)
    return f", did you mean '{near[0]}'?" if near else ""


def read_file(file: Path) -> Source:
    """Reads a YAML file. Raises ConfigError with file, line and column."""
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: can't be read: {error}") from error
    try:
        node = yaml.compose(text, Loader=_Loader)
        values = yaml.load(text, Loader=_Loader)  # noqa: S506 (a safe loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"{file}:{mark.line + 1}:{mark.column + 1}" if mark else str(file)
        raise ConfigError(f"{place}: not valid YAML: {error.problem}") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{file}: not valid YAML: {error}") from error
    if values is None:
        values = {}
    if not isinstance(values, dict):
        raise ConfigError(f"{file}:1: must be a mapping of settings, not a {type(values).__name__}")
    places = {path: f"{file}:{line}" for path, line in _lines(node, ())} if node else {}
    return Source(str(file), values, places, file.parent)


def _lines(node: yaml.Node, path: Path_) -> Iterator[tuple[Path_, int]]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            below = (*path, key.value)
            yield below, key.start_mark.line + 1
            yield from _lines(value, below)
    elif isinstance(node, yaml.SequenceNode):
        for number, value in enumerate(node.value):
            yield (*path, number), value.start_mark.line + 1
            yield from _lines(value, (*path, number))


def read_environment(environ: Mapping[str, str]) -> Source:
    """Reads GOALKEEPER_… variables; `__` goes one level down, lists and mappings are written in YAML."""
    values: dict[str, Any] = {}
    places: dict[Path_, str] = {}
    for name, text in sorted(environ.items()):
        key = name.removeprefix(PREFIX)
        if key == name or key in NOT_SETTINGS:
            continue
        path = SHORT_NAMES.get(key) or tuple(key.lower().split("__"))
        _put(values, path, _environment_value(name, text))
        places[path] = name
    return Source("environment", values, places)


def _environment_value(name: str, text: str) -> object:
    if text in ("", "null"):
        return None
    if text[0] not in "[{":
        return text
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 (a safe loader)
    except yaml.YAMLError as error:
        raise ConfigError(f"{name}: not valid YAML: {text!r}") from error


def read_flags(flags: Mapping[str, Any]) -> Source:
    """Reads the command line's host, port, upstream, data and token; None means not given."""
    values: dict[str, Any] = {}
    places: dict[Path_, str] = {}
    for name, value in flags.items():
        if value is not None:
            path = SHORT_NAMES[name.upper()]
            _put(values, path, value)
            places[path] = f"--{name}"
    return Source("command line", values, places)


def _put(values: dict[str, Any], path: tuple[str, ...], value: object) -> None:
    for step in path[:-1]:
        below = values.get(step)
        if not isinstance(below, dict):
            below = values[step] = {}
        values = below
    values[path[-1]] = value


class Layer(PydanticBaseSettingsSource):
    """One source as pydantic-settings takes it: a whole mapping, laid over the sources below it."""

    def __init__(self, settings: type[BaseSettings], source: Source) -> None:
        super().__init__(settings)
        self._source = source

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        """Gives one value, as the base class asks for; `__call__` gives them all."""
        return self._source.values.get(field_name), field_name, self.field_is_complex(field)

    def __call__(self) -> dict[str, Any]:
        """Gives all values of the source."""
        return dict(self._source.values)
