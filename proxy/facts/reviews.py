"""Makes decisions of pull-request reviews: what was turned down there often stands nowhere else.

Reads what `gh api` gives for pulls, their reviews and comments, and `gh pr view --json`, in any mixture. A review that
asks for changes is a decision; so is a comment that binds (the caller's rules say that), unless its author is the
pull request's own or a machine.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import Any

import msgspec

from proxy.facts.jsontext import Broken
from proxy.facts.model import Fact

_PULL = re.compile(r"https?://[^/]+/(?:repos/)?([^/\s]+/[^/\s]+)/(?:pull|pulls|issues)/(\d+)")
_QUOTED = re.compile(r"^[ \t]*>.*(?:\n|\Z)", re.MULTILINE)
_DEPTH = 12  # levels of a GraphQL answer


class Pull(msgspec.Struct, frozen=True):
    """A pull request, as far as an export tells of it."""

    name: str = ""  # owner/repository#number
    title: str = ""
    author: str = ""
    turned_down: bool = False  # closed without a merge


class Said(msgspec.Struct, frozen=True):
    """One review or comment."""

    line: int
    value: Mapping[str, Any]
    within: str  # the pull request's name by the object around it

    @property
    def pull(self) -> str:
        """The name of the pull request that it belongs to."""
        return _name(self.value) or self.within


class Export(msgspec.Struct, frozen=True):
    """What a file of reviews amounts to."""

    facts: tuple[tuple[int, Fact], ...]
    broken: tuple[Broken, ...]
    passed: int  # reviews and comments that decide nothing


def decisions_in(values: Iterable[tuple[int, Any]], project: str, binds: Callable[[str], bool]) -> Export:
    """Gives a decision for each review or comment that binds; without a `project` its repository is one."""
    pulls: dict[str, Pull] = {}
    said: list[Said] = []
    broken: list[Broken] = []
    for line, value in values:
        if isinstance(value, Broken):
            broken.append(value)
            continue
        before = len(said), len(pulls)
        for found in _walked(line, value, "", 0):
            if isinstance(found, Pull):
                pulls[found.name] = found
            else:
                said.append(found)
        if (len(said), len(pulls)) == before and value not in ([], {}) and not isinstance(value, Mapping | list):
            broken.append(Broken(line, f"a review must be an object, not a {type(value).__name__}"))
        elif (len(said), len(pulls)) == before and value not in ([], {}):
            broken.append(Broken(line, "neither a pull request nor a review or comment with body and user"))
    deciding = [one for one in said if _decides(one, pulls.get(one.pull, Pull()), binds)]
    facts = tuple((one.line, _fact(one, pulls.get(one.pull, Pull(one.pull)), project)) for one in deciding)
    return Export(facts, tuple(broken), len(said) - len(deciding))


def _walked(line: int, value: Any, within: str, depth: int) -> Iterator[Pull | Said]:  # noqa: ANN401  any JSON
    if depth > _DEPTH:
        return
    if isinstance(value, list):
        for one in value:
            yield from _walked(line, one, within, depth + 1)
    elif isinstance(value, dict):
        yield from _in_object(line, value, within, depth)


def _in_object(line: int, value: Mapping[str, Any], within: str, depth: int) -> Iterator[Pull | Said]:
    if isinstance(value.get("title"), str) and isinstance(value.get("number"), int):
        pull = _pull(value)
        yield pull
        within = pull.name
    elif isinstance(value.get("body"), str) and _author(value):
        yield Said(line, value, within)
        return
    for key, one in value.items():
        if key not in ("user", "author", "head", "base", "_links"):
            yield from _walked(line, one, within, depth + 1)


def _pull(value: Mapping[str, Any]) -> Pull:
    state = str(value.get("state", "")).upper()
    merged = value.get("merged") is True or bool(value.get("merged_at") or value.get("mergedAt"))
    return Pull(_name(value), value["title"], _author(value), state == "CLOSED" and not merged)


def _name(value: Mapping[str, Any]) -> str:
    for key in ("html_url", "pull_request_url", "issue_url", "url"):
        found = _PULL.match(value[key]) if isinstance(value.get(key), str) else None
        if found:
            return f"{found[1]}#{found[2]}"
    return ""


def _author(value: Mapping[str, Any]) -> str:
    who = value.get("user") or value.get("author")
    return str(who.get("login") or "") if isinstance(who, dict) else ""


def _is_machine(value: Mapping[str, Any]) -> bool:
    who = value.get("user") or value.get("author") or {}
    return who.get("type") == "Bot" or who.get("is_bot") is True or _author(value).endswith("[bot]")


def _decides(said: Said, pull: Pull, binds: Callable[[str], bool]) -> bool:
    value = said.value
    state = str(value.get("state", "")).upper()
    words = _own_words(value["body"])
    if not words or _is_machine(value) or state in ("APPROVED", "DISMISSED", "PENDING"):
        return False
    if state == "CHANGES_REQUESTED":
        return True
    return _author(value) != pull.author and binds(words)


def _own_words(body: str) -> str:
    return _QUOTED.sub("", body.replace("\r\n", "\n")).strip()


def _fact(said: Said, pull: Pull, project: str) -> Fact:
    value = said.value
    at = next((value[key] for key in ("submitted_at", "submittedAt", "created_at", "createdAt") if value.get(key)), "")
    url = next((value[key] for key in ("html_url", "url") if isinstance(value.get(key), str)), "")
    commit = value.get("commit_id") or value.get("original_commit_id") or ""
    told = {
        "url": url,
        "pull": pull.name,
        "title": pull.title,
        "path": value.get("path"),
        "git_commit": commit,
        "state": str(value.get("state", "")).lower() or ("closed" if pull.turned_down else ""),
    }
    repository = pull.name.partition("#")[0]
    seed = "|".join((project or repository, url or str(value.get("id", "")), _author(value), value["body"]))
    return Fact(
        pin="r" + blake2b(seed.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()[:11],
        kind="decision",
        status="active",
        scope="project",
        text=_own_words(value["body"]),
        quote=value["body"],
        turn=0,
        rule="review",
        project=project or repository,
        session="",
        branch="",
        observed_at=str(at),
        source={name: one for name, one in told.items() if isinstance(one, str) and one},
        who=_author(value),
        rejected=(f"{pull.title} ({pull.name})",) if pull.turned_down else (),
    )
