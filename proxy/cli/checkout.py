"""A git checkout, asked by the program git; its own configuration runs no other programs."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import msgspec

from proxy.errors import BadRequest, GoalkeeperError

_SECONDS = 30
_COMMIT = re.compile(r"[0-9a-fA-F]{4,40}")
_SAFE = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.quotePath=false")


class Checkout(msgspec.Struct, frozen=True):
    """A working tree; answers are remembered, since the history doesn't change meanwhile."""

    top: Path
    _told: dict[tuple[str, ...], str | None] = {}

    @classmethod
    def at(cls, folder: Path) -> Checkout:
        """Finds the checkout around a folder. Raises BadRequest when there is none."""
        if not folder.is_dir():
            raise BadRequest(f"{folder}: there is no such folder")
        top = _git(folder, "rev-parse", "--show-toplevel")
        if top is None:
            raise BadRequest(f"{folder}: not in a git checkout")
        return cls(Path(top.strip()))

    def has(self, commit: str) -> bool:
        """Whether a commit is known here."""
        return bool(_COMMIT.fullmatch(commit)) and self._asked("cat-file", "-e", f"{commit}^{{commit}}") is not None

    def before(self, at: str) -> str:
        """Gives the newest commit that is older than a time, "" when none is."""
        return (self._asked("rev-list", "-1", f"--before={at}", "HEAD") or "").strip()

    def behind(self, commit: str) -> int:
        """Gives how many commits HEAD is ahead of a commit in its history, -1 when it isn't in it."""
        if self._asked("merge-base", "--is-ancestor", commit, "HEAD") is None:
            return -1
        return int((self._asked("rev-list", "--count", f"{commit}..HEAD") or "0").strip())

    def changed(self, commit: str) -> tuple[str, ...]:
        """Gives the files that differ between a commit and the working tree."""
        told = self._asked("diff", "--no-ext-diff", "--no-textconv", "--name-only", "-z", commit, "--")
        return tuple(filter(None, (told or "").split("\0")))

    def files(self) -> tuple[str, ...]:
        """Gives the files of the working tree that git knows."""
        return tuple(filter(None, (self._asked("ls-files", "-z") or "").split("\0")))

    def origin(self) -> str:
        """Gives where it was cloned from, "" when from nowhere."""
        return (self._asked("config", "--get", "remote.origin.url") or "").strip().removesuffix(".git")

    def _asked(self, *words: str) -> str | None:
        if words not in self._told:
            self._told[words] = _git(self.top, *words)
        return self._told[words]


def _git(folder: Path, *words: str) -> str | None:
    """Gives what git says, None when it says no. Raises GoalkeeperError when it can't be run, or hangs."""
    command = ["git", *_SAFE, "-C", str(folder), *words]
    environ = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    try:
        done = subprocess.run(  # noqa: S603  no shell; what isn't ours are paths, checked ids and times
            command, capture_output=True, timeout=_SECONDS, env=environ, check=False
        )
    except FileNotFoundError as error:
        raise GoalkeeperError("git isn't installed, or not in PATH") from error
    except subprocess.TimeoutExpired as error:
        raise GoalkeeperError(f"git {words[0]} took more than {_SECONDS} seconds in {folder}") from error
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else None
