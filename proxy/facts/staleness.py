"""Which facts may hold no longer, because what they speak of has changed since."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_DATE = re.compile(r"\b(\d{4}-\d\d-\d\d)\b")
_NAMED = re.compile(r".*(?:/|\w\.[A-Za-z]\w{0,7}$)")


def named_in(fact: Mapping[str, Any]) -> tuple[str, ...]:
    """Gives what looks like a file or folder in a fact's words, and the file that a review was about."""
    source = fact["source"]
    folder = f"{source['cwd'].rstrip('/')}/" if source.get("cwd") else ""
    found = [source["path"]] if source.get("path") else []
    for text in (fact["text"], fact["quote"]):
        words = (word.strip(".,;:!?()[]{}\"'`<>") for word in text.split())
        found += [word.removeprefix(folder) for word in words if _NAMED.match(word) and "://" not in word]
    return tuple(dict.fromkeys(name.removeprefix("./").lstrip("/") for name in found if name.strip("./")))


def matching(names: Sequence[str], files: Iterable[str]) -> list[str]:
    """Gives the files that names mean: the file itself, one whose path ends so, or one in a folder of that name."""
    return [file for file in files if any(_means(name, file) for name in names)]


def due(fact: Mapping[str, Any], today: str) -> str:
    """Gives the date in a fact's revisit condition when it has come, "" otherwise."""
    found = _DATE.search(fact.get("revisit", ""))
    return found[1] if found and found[1] <= today else ""


def _means(name: str, file: str) -> bool:
    if file == name or file.endswith(f"/{name}"):
        return True
    folder = name.rstrip("/")
    return "/" in name and f"/{folder}/" in f"/{file}"
