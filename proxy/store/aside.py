"""A store that only reads: for plans that nobody asked to be carried out."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import TypeVar

from proxy.redaction import Sealer
from proxy.store.reads import Reads
from proxy.store.rows import Batch, Kept, Loaded
from proxy.store.schema import migrate
from proxy.store.signal import EditMark
from proxy.store.sqlite import Store, settle

T = TypeVar("T")


class _Still(EditMark):
    """A mark that nobody changes; every branch reads its edits once."""

    def __init__(self) -> None:
        """Needs no file."""

    @property
    def value(self) -> bytes:
        """The mark."""
        return b"once"

    def close(self) -> None:
        """Has nothing to close."""


class Aside(Store):
    """Reads one tenant's conversations, whoever asks, and keeps nothing of what it is given."""

    def __init__(self, db: sqlite3.Connection, seal: Sealer, tenant: str = "", namespace: str = "") -> None:
        Reads.__init__(self, db, seal)
        self.seal = seal
        db.execute("PRAGMA query_only = ON")
        self.folder = Path()
        self.edits = _Still()
        self._tenant, self._namespace = tenant, namespace

    @classmethod
    def empty(cls) -> Aside:
        """Gives one that knows nothing."""
        db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        migrate(db)
        return cls(db, Sealer(None))

    def load_branches(self, _tenant: str, _namespace: str, hashes: Sequence[bytes]) -> list[Loaded]:
        """Gives the tenant's branches that are known under any of these hashes."""
        return super().load_branches(self._tenant, self._namespace, hashes)

    def load_messages(self, _tenant: str, digests: Iterable[str]) -> dict[str, bytes]:
        """Gives the bytes of the tenant's messages."""
        return super().load_messages(self._tenant, digests)

    def tokens_of(self, _tenant: str, digests: Iterable[str]) -> dict[str, int]:
        """Gives the token counts of the tenant's messages."""
        return super().tokens_of(self._tenant, digests)

    def reply(self, _tenant: str, _namespace: str, name: str) -> Kept | None:
        """Gives what an upstream keeps for the tenant under an id."""
        return super().reply(self._tenant, self._namespace, name)

    def submit(self, _: Batch) -> Future[None]:
        """Keeps nothing."""
        done: Future[None] = Future()
        done.set_result(None)
        return done

    def later(self, _: Batch) -> None:
        """Keeps nothing."""

    def flush(self) -> None:
        """Has nothing to write."""

    def run(self, job: Callable[[sqlite3.Connection], T]) -> Future[T]:
        """Runs a job; one that would write fails, as the connection only reads."""
        future: Future[T] = Future()
        settle(future, job, self._db)
        return future

    def close(self) -> None:
        """Closes the connection."""
        self._db.close()
