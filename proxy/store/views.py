"""The facts on disk for people and scripts: one JSONL file a project, a line an event, and one page in Markdown.

Several processes may write them; each holds the folder's lock meanwhile, and looks into the database once it has it. So
the last one to write a page writes the newest state, and what was forgotten meanwhile doesn't come back.
"""

from __future__ import annotations

import fcntl
import os
import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path

import msgspec

from proxy.facts.markdown import page
from proxy.store.fact_rows import Event, event_line

_LOCK = ".lock"


def file_name(project: str, kind: str = "jsonl") -> str:
    """Gives a project's file name: readable, safe in any folder, and different for different names."""
    slug = re.sub(r"[^a-z0-9]+", "-", project.lower()).strip("-")[-40:] or "unnamed"
    mark = blake2b(project.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return f"{slug}-{mark}.{kind}"


def append(folder: Path, db: sqlite3.Connection, events: Sequence[Event]) -> None:
    """Appends committed events to the projects' files, each line in one write, so that none is ever torn."""
    with _locked(folder) as facts:
        for event in events:
            if not db.execute("SELECT 1 FROM fact_events WHERE seq = ?", (event.seq,)).fetchone():
                continue  # forgotten since it was committed
            name = facts / file_name(event.project)
            file = os.open(name, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.write(file, event.line.encode("utf-8", "replace"))
            finally:
                os.close(file)
        db.executemany("DELETE FROM unlisted WHERE event = ?", [(event.seq,) for event in events])


def rewrite(folder: Path, db: sqlite3.Connection, projects: Iterable[str]) -> None:
    """Writes both views of these projects anew from the database, or takes them away when nothing is left."""
    with _locked(folder) as facts:
        for project in projects:
            lines = db.execute(
                "SELECT seq, e.at, what, e.record FROM fact_events e JOIN facts f ON f.id = fact"
                " WHERE f.project = ? ORDER BY seq",
                (project,),
            )
            text = "".join(event_line(*row) for row in lines)
            _replace(facts / file_name(project), text)
            _replace(facts / file_name(project, "md"), _page(db, project))


def write_page(folder: Path, db: sqlite3.Connection, project: str) -> None:
    """Writes the Markdown view of a project as it stands now."""
    with _locked(folder) as facts:
        _replace(facts / file_name(project, "md"), _page(db, project))


def sweep(folder: Path) -> None:
    """Takes away what a killed process left half written."""
    with _locked(folder) as facts:
        for file in facts.glob(".*"):
            if file.name != _LOCK:
                file.unlink(missing_ok=True)


def outdated(folder: Path, db: sqlite3.Connection) -> list[str]:
    """Gives the projects whose page is older than their events, as a killed process leaves it."""
    projects = [project for (project,) in db.execute("SELECT DISTINCT project FROM facts")]
    facts = folder / "facts"
    return [one for one in projects if _changed_at(facts / file_name(one, "md")) < _changed_at(facts / file_name(one))]


def _changed_at(file: Path) -> int:
    try:
        return file.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


def _page(db: sqlite3.Connection, project: str) -> str:
    rows = db.execute("SELECT record FROM facts WHERE project = ? ORDER BY id", (project,)).fetchall()
    return page(project, [msgspec.json.decode(record) for (record,) in rows]) if rows else ""


def _replace(file: Path, text: str) -> None:
    """Puts a whole text into a file's place at once; no file for no text."""
    if not text:
        file.unlink(missing_ok=True)
        return
    fresh = file.with_name(f".{file.name}.{os.getpid()}")
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as stream:
        stream.write(text.encode("utf-8", "replace"))
    fresh.replace(file)


@contextmanager
def _locked(folder: Path) -> Iterator[Path]:
    facts = folder / "facts"
    facts.mkdir(mode=0o700, exist_ok=True)
    lock = os.open(facts / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield facts
    finally:
        os.close(lock)
