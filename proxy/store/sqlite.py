"""The store: one SQLite file, written by one thread in groups, read on the caller's thread."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Self, TypeVar

from proxy.errors import StoreError
from proxy.redaction import Sealer
from proxy.store.fact_rows import Event, event_line
from proxy.store.reads import Reads
from proxy.store.rows import Batch
from proxy.store.schema import attach, connect
from proxy.store.signal import EditMark
from proxy.store.views import append, outdated, write_page
from proxy.store.writes import Writer

T = TypeVar("T")
_GROUP = 64  # batches in one transaction
_TRIES = 6  # times ten seconds of waiting for another process's transaction
_QUIET_SECONDS = 0.5  # a page is written anew when nothing was queued for so long,
_STALE_SECONDS = 2.0  # or when it is behind for so long
_SHARE = 20  # a page that took long is written again no sooner than after so many times that
_LISTING_TIME = timedelta(seconds=2)  # far more than it takes from a commit to its lines in the JSONL view

Job = Callable[[sqlite3.Connection], Any]
Lost = Callable[[Exception], None]
_Order = tuple[Batch | Job, "Future[Any] | None"]  # no future: nobody waits


class Store(Reads):
    """The proxy's memory. Many processes may share a folder; what was acknowledged survives a kill."""

    def __init__(self, folder: Path, db: sqlite3.Connection, seal: Sealer, lost: Lost) -> None:
        super().__init__(attach(folder), seal)
        self._lost = lost
        self.folder = folder
        self.edits = EditMark(folder)
        self._writing = db
        self._writer = Writer(db, seal)
        self._orders: SimpleQueue[list[_Order] | None] = SimpleQueue()
        self._held: list[_Order] = []
        self._closed = False
        self._behind: dict[str, float] = {}  # projects whose page is behind, and since when
        self._pages_after = 0.0  # no page is written before this time
        self._thread = threading.Thread(target=self._work, name="store-writer", daemon=True)

    @classmethod
    def open(cls, folder: Path, seal: Sealer, lost: Lost = lambda _: None) -> Self:
        """Opens a data folder, made when it isn't there, and starts the writer. Raises StoreError.

        `lost` is told, on the writer's thread, why a batch wasn't written that nobody waited for.
        """
        store = cls(folder, connect(folder), seal, lost)
        store._thread.start()
        return store

    def submit(self, batch: Batch) -> Future[None]:
        """Queues a batch. The future resolves when it is committed and its facts stand in the JSONL view."""
        return self._queue(batch)

    def later(self, batch: Batch) -> None:
        """Holds a batch that nobody waits for until the next one is queued, or `flush`: waking the writer costs.

        To be called on one thread only, the one that submits.
        """
        self._held.append((batch, None))

    def flush(self) -> None:
        """Queues what is held."""
        held, self._held = self._held, []
        if held and not self._closed:
            self._orders.put(held)

    def run(self, job: Callable[[sqlite3.Connection], T]) -> Future[T]:
        """Queues a job that does its own transactions on the writing connection, such as a purge."""
        return self._queue(job)

    def _queue(self, what: Batch | Job) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()  # who stops waiting must not cancel what is being written
        if self._closed:
            _fail(future, ValueError("the store is closed"))
        else:
            held, self._held = self._held, []
            self._orders.put([*held, (what, future)])
        return future

    def close(self) -> None:
        """Writes what is queued and held, and closes the file."""
        self.flush()
        self._closed = True
        if self._thread.is_alive():
            self._orders.put(None)
            self._thread.join()
        self._writing.close()
        self._db.close()
        self.edits.close()

    def _work(self) -> None:
        self._relist()
        with suppress(OSError, sqlite3.Error):
            self._behind.update(dict.fromkeys(outdated(self.folder, self._writing), 0.0))
        while (group := self._next()) is not None:
            ends = False
            with suppress(Empty):
                while len(group) < _GROUP and not ends:
                    following = self._orders.get_nowait()
                    ends = following is None
                    group = group + (following or [])
            self._serve(group)
            if ends:
                break
        self._relist()
        self._write_pages()

    def _next(self) -> list[_Order] | None:
        """Waits for the next orders; in a quiet moment, or when it is high time, pages are written first."""
        while self._behind:
            now = time.monotonic()
            overdue = now - min(self._behind.values()) > _STALE_SECONDS and now > self._pages_after
            try:
                if not overdue:
                    return self._orders.get(timeout=max(_QUIET_SECONDS, self._pages_after - now))
            except Empty:
                pass
            self._write_pages()
        return self._orders.get()

    def _write_pages(self) -> None:
        started = time.monotonic()
        projects, self._behind = tuple(self._behind), {}
        for project in projects:
            with suppress(OSError, sqlite3.Error):  # a view: the next change, or the next start, writes it
                write_page(self.folder, self._writing, project)
        ended = time.monotonic()
        self._pages_after = ended + _SHARE * (ended - started)

    def _serve(self, group: list[_Order]) -> None:
        batches: list[tuple[Batch, Future[Any] | None]] = []
        for what, future in group:
            if isinstance(what, Batch):
                batches.append((what, future))
                continue
            self._commit(batches)
            batches = []
            if future is not None:
                settle(future, what, self._writing)
        self._commit(batches)

    def _commit(self, batches: list[tuple[Batch, Future[Any] | None]]) -> None:
        """Commits batches together; when that fails each alone, so that one bad batch harms no other."""
        if not batches:
            return
        try:
            self._transact([batch for batch, _ in batches])
        except Exception as error:  # noqa: BLE001 — a writer that dies would leave every later request waiting
            if len(batches) == 1:
                future = batches[0][1]
                if future is not None:
                    _fail(future, error)
                else:
                    self._lost(error)
                return
            for batch in batches:
                self._commit([batch])
            return
        for _, future in batches:
            if future is not None:
                future.set_result(None)

    def _transact(self, batches: list[Batch]) -> None:
        self._begin()
        try:
            self._writer.learn_forgotten()
            events = [event for batch in batches for event in self._writer.write(batch)]
            self._writing.execute("COMMIT")
        except BaseException:
            self._writing.execute("ROLLBACK")
            raise
        if events:
            self._list(events)

    def _begin(self) -> None:
        for attempt in range(_TRIES):
            try:
                self._writing.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                if attempt == _TRIES - 1:
                    raise
            else:
                return

    def _list(self, events: list[Event]) -> None:
        """Appends committed events to the JSONL view, then forgets that they were still to be listed."""
        for event in events:
            self._behind.setdefault(event.project, time.monotonic())
        with suppress(OSError, sqlite3.Error):  # they are committed: the view gets them at the next start
            append(self.folder, self._writing, events)

    def _relist(self) -> None:
        """Lists what a killed process committed and didn't list; younger events another process may be listing now."""
        before = (datetime.now(UTC) - _LISTING_TIME).isoformat()
        rows = self._writing.execute(
            "SELECT event, project, e.at, what, e.record FROM unlisted u JOIN fact_events e ON seq = event"
            " JOIN facts f ON f.id = fact WHERE u.at < ? ORDER BY event",
            (before,),
        ).fetchall()
        if rows:
            self._list([Event(seq, of, event_line(seq, at, what, record)) for seq, of, at, what, record in rows])


def settle(future: Future[Any], job: Job, db: sqlite3.Connection) -> None:
    """Runs a job and resolves its future, with StoreError where it fails."""
    try:
        future.set_result(job(db))
    except Exception as error:  # noqa: BLE001 — as above
        _fail(future, error)


def _fail(future: Future[Any], error: Exception) -> None:
    failure = StoreError(f"not stored: {error}")
    failure.__cause__ = error
    future.set_exception(failure)
