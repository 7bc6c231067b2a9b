"""Reads profile files (YAML) and says where one is wrong: file, line, column and the remedy."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import TypeVar

import msgspec
import yaml

from proxy.clients.profile import Match, Profile, Profiles, Session, sealed
from proxy.clients.sides import Marks
from proxy.errors import ConfigError

T = TypeVar("T")
GENERIC = "generic"
_LISTS = (
    "tags",
    "machine",
    "synthetic",
    "nudges",
    "summaries",
    "cuts",
    "answer_tools",
    "denials",
    "midturn",
    "templates",
)
TOP = ("name", "match", "session", "side", "quotes", *_LISTS)
MATCH = ("user_agent", "headers", "system")
SESSION = ("headers", "body", "agent", "parent")
SIDE = ("summarise_last", "summarise_system", "title", "other", "flat", "keeps_tail")


def load_profiles(folders: Sequence[Path]) -> Profiles:
    """Reads all *.yaml files of these folders; a file in a later folder replaces one of the same name.

    What the generic profile lists holds for every client. Raises ConfigError with file:line:column.
    """
    files: dict[str, Path] = {}
    for folder in folders:
        files.update({path.name: path for path in sorted(folder.glob("*.yaml"))})
    profiles = [_File(path).profile() for _, path in sorted(files.items())]
    generic = next((profile for profile in profiles if profile.name == GENERIC), Profile(GENERIC))
    clients = [sealed(_widened(profile, generic)) for profile in profiles if profile.name != GENERIC]
    return Profiles(sealed(generic), tuple(clients))


def _widened(client: Profile, generic: Profile) -> Profile:
    def both(own: tuple[T, ...], shared: tuple[T, ...]) -> tuple[T, ...]:
        return tuple(dict.fromkeys((*own, *shared)))

    session = Session(
        headers=both(client.session.headers, generic.session.headers),
        body=both(client.session.body, generic.session.body),
        agent=both(client.session.agent, generic.session.agent),
        parent=both(client.session.parent, generic.session.parent),
    )
    marks = msgspec.structs.replace(
        client.marks,
        summarise_last=both(client.marks.summarise_last, generic.marks.summarise_last),
        summarise_system=both(client.marks.summarise_system, generic.marks.summarise_system),
        title=both(client.marks.title, generic.marks.title),
        other=both(client.marks.other, generic.marks.other),
        flat=both(client.marks.flat, generic.marks.flat),
    )
    return replace(
        client,
        session=session,
        marks=marks,
        tags=both(client.tags, generic.tags),
        machine=both(client.machine, generic.machine),
        synthetic=both(client.synthetic, generic.synthetic),
        nudges=both(client.nudges, generic.nudges),
        summaries=both(client.summaries, generic.summaries),
        cuts=both(client.cuts, generic.cuts),
        answer_tools=both(client.answer_tools, generic.answer_tools),
        denials=both(client.denials, generic.denials),
        midturn=both(client.midturn, generic.midturn),
        templates=both(client.templates, generic.templates),
    )


class _File:
    """One profile file: its nodes keep their places, so that an error can name them."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def profile(self) -> Profile:
        top = self._table(self._root(), TOP)
        if "name" not in top:
            raise ConfigError(f"{self._path}:1:1: a profile needs a name: add 'name: my-agent'")
        match = self._part(top, "match", MATCH)
        session = self._part(top, "session", SESSION)
        side = self._part(top, "side", SIDE)
        return Profile(
            name=self._word(top["name"]),
            match=Match(
                self._get(match, "user_agent", self._patterns),
                self._get(match, "headers", self._lower),
                self._get(match, "system", self._patterns),
            ),
            session=Session(
                headers=self._get(session, "headers", self._lower),
                body=self._get(session, "body", self._words),
                agent=self._get(session, "agent", self._lower),
                parent=self._get(session, "parent", self._lower),
            ),
            marks=Marks(
                summarise_last=self._get(side, "summarise_last", self._patterns),
                summarise_system=self._get(side, "summarise_system", self._patterns),
                title=self._get(side, "title", self._patterns),
                other=self._get(side, "other", self._patterns),
                flat=self._get(side, "flat", self._words),
                keeps_tail=self._flag(side["keeps_tail"]) if "keeps_tail" in side else True,
            ),
            quotes=self._flag(top["quotes"]) if "quotes" in top else False,
            tags=self._get(top, "tags", self._words),
            machine=self._get(top, "machine", self._words),
            synthetic=self._get(top, "synthetic", self._words),
            nudges=self._get(top, "nudges", self._words),
            summaries=self._get(top, "summaries", self._words),
            cuts=self._get(top, "cuts", self._words),
            answer_tools=self._get(top, "answer_tools", self._words),
            denials=self._get(top, "denials", self._patterns),
            midturn=self._get(top, "midturn", self._patterns),
            templates=self._get(top, "templates", self._patterns),
        )

    def _root(self) -> yaml.Node:
        try:
            node = yaml.compose(self._path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark
            place = f"{mark.line + 1}:{mark.column + 1}" if mark is not None else "1:1"
            raise ConfigError(f"{self._path}:{place}: not readable as YAML: {error.problem}") from error
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{self._path}:1:1: can't be read: {error}") from error
        if node is None:
            raise ConfigError(f"{self._path}:1:1: the file is empty: a profile needs at least a name")
        return node

    def _wrong(self, node: yaml.Node, words: str) -> ConfigError:
        return ConfigError(f"{self._path}:{node.start_mark.line + 1}:{node.start_mark.column + 1}: {words}")

    def _table(self, node: yaml.Node, known: Sequence[str]) -> dict[str, yaml.Node]:
        if not isinstance(node, yaml.MappingNode):
            raise self._wrong(node, f"expected a table with some of: {', '.join(sorted(known))}")
        table: dict[str, yaml.Node] = {}
        for key, value in node.value:
            if key.value not in known:
                near = get_close_matches(str(key.value), sorted(known), n=1)
                remedy = f"did you mean '{near[0]}'?" if near else f"known keys: {', '.join(sorted(known))}"
                raise self._wrong(key, f"unknown key '{key.value}': {remedy}")
            table[key.value] = value
        return table

    def _part(self, top: dict[str, yaml.Node], key: str, known: Sequence[str]) -> dict[str, yaml.Node]:
        return self._table(top[key], known) if key in top else {}

    @staticmethod
    def _get(table: dict[str, yaml.Node], key: str, read: Callable[[yaml.Node], tuple[T, ...]]) -> tuple[T, ...]:
        return read(table[key]) if key in table else ()

    def _word(self, node: yaml.Node) -> str:
        if not isinstance(node, yaml.ScalarNode) or not node.value.strip():
            raise self._wrong(node, "expected a text")
        return str(node.value)

    def _words(self, node: yaml.Node) -> tuple[str, ...]:
        if not isinstance(node, yaml.SequenceNode):
            raise self._wrong(node, "expected a list of texts: write '- text' on a line of its own for each")
        return tuple(self._word(item) for item in node.value)

    def _lower(self, node: yaml.Node) -> tuple[str, ...]:
        return tuple(word.lower() for word in self._words(node))

    def _patterns(self, node: yaml.Node) -> tuple[re.Pattern[str], ...]:
        self._words(node)
        return tuple(self._pattern(item) for item in node.value)

    def _pattern(self, node: yaml.Node) -> re.Pattern[str]:
        try:
            return re.compile(self._word(node), re.IGNORECASE | re.DOTALL)
        except re.error as error:
            raise self._wrong(node, f"not a regular expression: {error}") from error

    def _flag(self, node: yaml.Node) -> bool:
        if not isinstance(node, yaml.ScalarNode) or node.value not in ("true", "false"):
            raise self._wrong(node, "expected true or false")
        return bool(node.value == "true")
