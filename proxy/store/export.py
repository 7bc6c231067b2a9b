"""The JSONL view of the facts: one file a project, one line an event."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path


def file_name(project: str) -> str:
    """Gives a project's file name: readable, safe in any folder, and different for different names."""
    slug = re.sub(r"[^a-z0-9]+", "-", project.lower()).strip("-")[-40:] or "unnamed"
    mark = blake2b(project.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return f"{slug}-{mark}.jsonl"


def append(folder: Path, lines: Iterable[tuple[str, str]]) -> None:
    """Appends (project, line) pairs to the projects' files; each line is one write, so none is ever torn."""
    facts = folder / "facts"
    facts.mkdir(mode=0o700, exist_ok=True)
    for project, line in lines:
        file = os.open(facts / file_name(project), os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(file, line.encode("utf-8", "replace"))
        finally:
            os.close(file)
