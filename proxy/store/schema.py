"""Opens the database file and brings its tables up to date."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from proxy.errors import StoreError

FILE = "goalkeeper.db"
_MIGRATIONS = Path(__file__).parent / "migrations"
_BUSY_SECONDS = 10.0


def connect(folder: Path) -> sqlite3.Connection:
    """Opens the data folder's database, made when it isn't there (folder 0700, file 0600), at the newest version.

    Raises StoreError when the folder can't be used or was written by a newer version.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(folder / FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        db = attach(folder)
        _use_wal(db)
        migrate(db)
    except (OSError, sqlite3.Error) as error:
        raise StoreError(f"{folder / FILE}: {error}") from error
    return db


def attach(folder: Path) -> sqlite3.Connection:
    """Opens a further connection to a database that is there already. Raises StoreError when it isn't."""
    file = folder / FILE
    if not file.exists():
        raise StoreError(f"{file}: no such file; nothing was stored here yet (--data names the folder)")
    db = sqlite3.connect(file, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    db.execute("PRAGMA synchronous = NORMAL")
    return db


def migrate(db: sqlite3.Connection) -> None:
    """Runs the migrations that this database hasn't seen; each is committed as a whole, or not at all."""
    scripts = sorted(_MIGRATIONS.glob("*.sql"))
    if version_of(db) > len(scripts):
        raise StoreError(f"the database has version {version_of(db)}, this program knows {len(scripts)}: update it")
    for number, script in enumerate(scripts, start=1):
        if version_of(db) >= number:
            continue
        with transaction(db):
            if version_of(db) < number:  # another process may have been quicker
                for statement in _statements(script.read_text("utf-8")):
                    db.execute(statement)
                db.execute(f"PRAGMA user_version = {number}")


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """Commits what is done inside, all of it or nothing."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        db.execute("ROLLBACK")
        raise


def version_of(db: sqlite3.Connection) -> int:
    """Gives the number of the newest migration that this database has seen."""
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def _use_wal(db: sqlite3.Connection) -> None:
    """Switches to WAL; SQLite doesn't wait for other processes there, so we do."""
    for attempt in range(200):
        try:
            db.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError:
            if attempt == 199:
                raise
            time.sleep(0.05)
        else:
            return


def _statements(script: str) -> Iterator[str]:
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
