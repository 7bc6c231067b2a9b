"""Makes facts of lines that people or other stores bring; says of each line that can't be used why."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from proxy.facts.jsontext import Broken
from proxy.facts.model import Fact

KINDS = ("goal", "correction", "constraint", "preference", "decision", "commitment", "fact")
STATUSES = ("active", "closed", "superseded", "retracted", "expired")
SCOPES = ("once", "session", "project")
_ULID = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")
_CHOICES = {"kind": KINDS, "status": STATUSES, "scope": SCOPES}
_DEFAULTS = {"kind": "fact", "status": "active", "scope": "project"}
_STRINGS = (
    "pin", "quote", "rule", "project", "session", "branch", "observed_at", "superseded_by", "fallen", "asked", "who",
    "evidence", "id", "title", "reason", "consequence", "revisit",
)  # fmt: skip


def facts_in(lines: Iterable[tuple[int, Any]], project: str) -> tuple[list[tuple[int, Fact]], list[Broken]]:
    """Gives the facts with their lines, the newest state of each, and the broken lines. `project`: of those without."""
    found: dict[str, tuple[int, Fact]] = {}
    broken: list[Broken] = []
    for number, value in lines:
        fact = value if isinstance(value, Broken) else _fact(number, value, project)
        if isinstance(fact, Broken):
            broken.append(fact)
        else:
            found[fact.id or f"line {number}"] = (number, fact)
    return list(found.values()), broken


def _fact(line: int, value: Any, project: str) -> Fact | Broken:  # noqa: ANN401  any JSON
    if not isinstance(value, dict):
        return Broken(line, f"a fact must be an object, not a {type(value).__name__}")
    text = value.get("text")
    if not isinstance(text, str) or not text.strip():
        return Broken(line, "text: must be words")
    for name, allowed in _CHOICES.items():
        if value.get(name, _DEFAULTS[name]) not in allowed:
            return Broken(line, f"{name}: must be one of {', '.join(allowed)} (it is {value[name]!r})")
    wrong = next((name for name in _STRINGS if not isinstance(value.get(name, ""), str)), "")
    if wrong:
        return Broken(line, f"{wrong}: must be a string")
    if value.get("id") and not _ULID.fullmatch(value["id"]):
        return Broken(line, f"id: must be a ULID of 26 characters (it is {value['id']!r}); leave it out for a new one")
    return _made(value, project)


def _made(value: Mapping[str, Any], project: str) -> Fact:
    texts = {name: value[name] for name in _STRINGS if value.get(name)}
    chosen = {name: value.get(name, default) for name, default in _DEFAULTS.items()}
    source = value.get("source")
    turn = value.get("turn")
    known: dict[str, Any] = {
        "pin": "", "quote": "", "rule": "imported", "session": "", "branch": "", "observed_at": "",
        "project": value.get("project") or project,
    }  # fmt: skip
    return Fact(
        **(known | texts | chosen),
        text=value["text"],
        turn=turn if isinstance(turn, int) else 0,
        source={str(k): v for k, v in source.items() if isinstance(v, str)} if isinstance(source, dict) else {},
        span=_span(value.get("span")),
        supersedes=_strings(value.get("all_superseded", value.get("supersedes"))),
        rejected=_strings(value.get("rejected")),
        edited=_strings(value.get("edited")),
    )


def _span(value: Any) -> tuple[int, int] | None:  # noqa: ANN401  any JSON
    if isinstance(value, list) and len(value) == 2 and all(isinstance(one, int) for one in value):
        return value[0], value[1]
    return None


def _strings(value: Any) -> tuple[str, ...]:  # noqa: ANN401  any JSON
    if isinstance(value, str):
        return (value,) if value else ()
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list) else ()
