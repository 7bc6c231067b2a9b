"""Where a client works: folder, git branch and commit, as far as its system text or environment block tells."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

import msgspec

_FOLDER = re.compile(
    r"(?:working (?:directory|folder)|\bcwd\"?)\s{0,4}(?:is|:|=)\s{0,4}[`\"']?"
    r"([/~][^\s`\"'<>,;]*|[A-Za-z]:\\[^\s`\"'<>,;]*)"
    r"|<cwd>\s*([^<\n]{1,400}?)\s*</cwd>"
    r"|# Current Working Directory \(([^)\n]{1,400})\)",
    re.IGNORECASE,
)
_BRANCH = re.compile(r"\b(?:current|git) branch\"?\s{0,4}(?:is|:|=)\s{0,4}[`\"']?([\w./-]{1,200})", re.IGNORECASE)
_COMMIT = re.compile(
    r"(?:recent commits:|latest git commit hash|\b(?:commit|head)(?: hash| sha)?\"?\s{0,4}[:=])\s{0,4}[`\"']?"
    r"([0-9a-f]{7,40})\b",
    re.IGNORECASE,
)
# What a client writes about its surroundings into a message of the user's: never the person's own words.
_ENVIRONMENT = re.compile(
    r"<(environment_context|environment_details|env|system-reminder)>(.{1,20000}?)</\1>", re.DOTALL
)
_READ = 200_000  # characters of one text that are looked at


class Place(msgspec.Struct, frozen=True):
    """Where the client works; "" for what it doesn't tell."""

    cwd: str = ""
    git_branch: str = ""
    git_commit: str = ""


NOWHERE = Place()


@lru_cache(maxsize=64)
def _place_in(text: str) -> Place:
    text = text[:_READ]
    folder, branch, commit = _FOLDER.search(text), _BRANCH.search(text), _COMMIT.search(text)
    named = (folder[1] or folder[2] or folder[3]).rstrip("/\\.") or "/" if folder else ""
    return Place(named, branch[1].rstrip(".") if branch else "", commit[1] if commit else "")


def place_of(system_text: str, opening: Sequence[str] = ()) -> Place:
    """Gives where the client works, by its system text, else by the environment blocks in its `opening` messages."""
    found = _place_in(system_text)
    if found.cwd and found.git_commit:
        return found
    blocks = [match[2] for text in opening for match in _ENVIRONMENT.finditer(text[:_READ])]
    if not blocks:
        return found
    other = _place_in("\n".join(blocks))
    return Place(found.cwd or other.cwd, found.git_branch or other.git_branch, found.git_commit or other.git_commit)


def project_of(system_text: str, named: str = "") -> str:
    """Gives the project's name: what a header or the path says, else the working directory, else ""."""
    return named.strip() or _place_in(system_text).cwd
