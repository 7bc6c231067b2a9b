"""Rule files and client profiles in a running proxy: what a person saves goes live by itself, or is told why not.

A thread looks at the files a few times a second and loads what changed, so no request ever waits for it.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec
from msgspec.structs import replace

from proxy.clients import Profiles, load_profiles
from proxy.errors import ConfigError
from proxy.pins.check import wrong_examples
from proxy.pins.rules import RuleSet, load_rules
from proxy.settings import Settings, packaged_folder
from proxy.store.rows import now
from proxy.telemetry import Counters, Log

POLL_SECONDS = 0.1  # a file counts as saved when it looks the same twice in a row
_CLOSE_SECONDS = 2.0

Stamps = tuple[tuple[str, int, int, int], ...]  # of each file: name, time of change, size, inode


class Saved(NamedTuple):
    """What the files look like from outside."""

    rules: Stamps
    profiles: Stamps


class User(Protocol):
    """Who works with rules and profiles."""

    def use(self, rules: RuleSet, profiles: Profiles) -> None:
        """Takes those that hold from now on."""


class Guides(msgspec.Struct, frozen=True):
    """The rules and profiles in force, since when, and what is wrong with files that were saved since."""

    rules: RuleSet
    profiles: Profiles
    since: str  # ISO 8601, UTC
    rule_problems: tuple[str, ...] = ()
    profile_problems: tuple[str, ...] = ()

    @property
    def problems(self) -> tuple[str, ...]:
        """Everything that keeps a saved file from being in force."""
        return (*self.rule_problems, *self.profile_problems)


def read_profiles(settings: Settings) -> Profiles:
    """Gives the packaged client profiles with what the settings add to them. Raises ConfigError."""
    own = settings.clients
    return load_profiles([packaged_folder() / "clients", *own.folders]).with_settings(
        ignore_tags=own.ignore_tags, answer_tools=own.answer_tools, denial_patterns=own.denial_patterns
    )


def read_guides(settings: Settings) -> Guides:
    """Gives the rules and profiles that the settings name. Raises ConfigError."""
    rules = load_rules(settings.pins.files, settings.pins.rules, marker=settings.pins.marker)
    return Guides(rules, read_profiles(settings), now())


class Reloading:
    """Watches the files behind the guides in force, and hands on what a person changes."""

    def __init__(self, settings: Settings, log: Log, counters: Counters) -> None:
        """Reads everything once. Raises ConfigError."""
        self._settings = settings
        self._log = log
        self._counters = counters
        self._folders = (packaged_folder() / "clients", *settings.clients.folders)
        self._seen = self._saved()  # before reading: a file that is saved meanwhile is read again
        self.guides = read_guides(settings)
        self._users: tuple[User, ...] = ()
        self._warnings: list[str] = []
        self._mask: Callable[[str], str] = str
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, users: Iterable[User], warnings: list[str], mask: Callable[[str], str]) -> None:
        """Begins to watch; changes reach `users` and `warnings` on the running loop's own thread.

        `mask` takes secret values out of what is told of a file.
        """
        self._users, self._warnings, self._mask = tuple(users), warnings, mask
        loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._watch, args=(loop,), name="reloading", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends the watching."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join(_CLOSE_SECONDS)

    def told(self, _: object = None) -> dict[str, Any]:
        """Gives what is in force, for people and programs."""
        guides = self.guides
        clients = [*guides.profiles.clients, guides.profiles.generic]
        return {
            "since": guides.since,
            "problems": [self._mask(problem) for problem in guides.problems],
            "files": [str(file) for file in self._settings.pins.files],
            "folders": [str(folder) for folder in self._folders],
            "clients": sorted(client.name for client in clients),
            "rules": [
                {"name": rule.name, "kind": rule.kind or "", "label": rule.label, "priority": rule.priority,
                 "place": rule.place}
                for rule in guides.rules.rules
            ],
        }  # fmt: skip

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        last = self._seen
        while not self._ended.wait(POLL_SECONDS):
            saved = self._saved()
            if saved != self._seen and saved == last:  # an editor that is still writing is left in peace
                seen, self._seen = self._seen, saved
                self._reload(loop, seen, saved)
            last = saved

    def _reload(self, loop: asyncio.AbstractEventLoop, seen: Saved, saved: Saved) -> None:
        """Reads what changed, rules and profiles apart: what is wrong with the one doesn't hold up the other."""
        guides = self.guides
        try:
            if saved.rules != seen.rules:
                guides = _with_rules(guides, self._settings)
            if saved.profiles != seen.profiles:
                guides = _with_profiles(guides, self._settings)
        except Exception as error:  # noqa: BLE001  a reader that fails on a file must not end the watching
            told = (f"{type(error).__name__}: {error}",)
            rules = saved.rules != seen.rules
            guides = replace(guides, rule_problems=told) if rules else replace(guides, profile_problems=told)
        if not self._ended.is_set():
            loop.call_soon_threadsafe(self._take, guides)

    def _take(self, guides: Guides) -> None:
        """Puts guides in force; on the loop's thread, so that no request sees half of them."""
        self.guides = guides
        for user in self._users:
            user.use(guides.rules, guides.profiles)
        problems = [self._mask(problem) for problem in guides.problems]
        self._warnings[:] = [f"not in force: {problem}" for problem in problems]
        if problems:
            self._counters.add("reloads_total", "refused")
            self._log.error("reload", problems=problems)
        else:
            self._counters.add("reloads_total", "taken")
            self._log.info("reload", rules=len(guides.rules.rules), clients=len(guides.profiles.clients))

    def _saved(self) -> Saved:
        profiles = (name for folder in self._folders for name in _profiles_in(folder))
        return Saved(tuple(map(_stamp, self._settings.pins.files)), tuple(map(_stamp, profiles)))


def _with_rules(old: Guides, settings: Settings) -> Guides:
    """Gives the rules as saved, or the old ones and what is wrong: unreadable, or an example that went well before."""
    try:
        rules = load_rules(settings.pins.files, settings.pins.rules, marker=settings.pins.marker)
    except ConfigError as error:
        return replace(old, rule_problems=tuple(str(error).split("\n")))
    wrong = tuple(wrong_examples(rules))
    known = {problem.message for problem in wrong_examples(old.rules)} if wrong else set()
    broken = tuple(str(problem) for problem in wrong if problem.message not in known)
    return replace(old, rule_problems=broken) if broken else replace(old, rules=rules, since=now(), rule_problems=())


def _with_profiles(old: Guides, settings: Settings) -> Guides:
    """Gives the profiles as saved, or the old ones and what is wrong."""
    try:
        return replace(old, profiles=read_profiles(settings), since=now(), profile_problems=())
    except ConfigError as error:
        return replace(old, profile_problems=tuple(str(error).split("\n")))


def _profiles_in(folder: Path) -> list[str]:
    try:
        return sorted(entry.path for entry in os.scandir(folder) if entry.name.endswith(".yaml"))
    except OSError:  # a folder that went away holds no profiles
        return []


def _stamp(file: str | Path) -> tuple[str, int, int, int]:
    try:
        found = os.stat(file)  # noqa: PTH116  many times a second: a Path each time would cost more than the call
    except OSError:
        return str(file), 0, 0, 0
    return str(file), found.st_mtime_ns, found.st_size, found.st_ino
