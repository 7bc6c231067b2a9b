"""Forgetting by age and by size."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path

from proxy.redaction import Sealer
from proxy.store import queries
from proxy.store.retention import Purged, purge
from proxy.store.sqlite import Store
from tests.store.build import KEY, asked, said, stated

OLD = (datetime.now(UTC) - timedelta(days=40)).isoformat()


def filled(folder: Path) -> Store:
    store = Store.open(folder, Sealer(KEY))
    shared = said("You are a coding agent.", "system")
    old = asked(
        shared,
        said("PASSWORD=hunter2-demo"),
        session="OLD",
        branch="B0",
        at=OLD,
        facts=(stated("p1", "Be brief.", session="OLD"),),
    )
    store.submit(old).result()
    store.submit(asked(shared, said("goal"), session="NEW", branch="B1")).result()
    return store


def test_old_sessions_leave_with_their_messages_and_secrets_and_facts_stay(tmp_path: Path) -> None:
    store = filled(tmp_path)

    def job(db: sqlite3.Connection) -> Purged:
        return purge(db, days=30, max_bytes=2_000_000_000)

    assert store.run(job).result() == Purged(sessions=1, messages=1, secrets=1)
    assert [one["id"] for one in queries.sessions(store._db)["sessions"]] == ["NEW"]
    assert [one["text"] for one in queries.facts(store._db)["facts"]] == ["Be brief."]
    assert len(store.load_messages("t1", store.path("B1", 9))) == 2
    assert store.run(job).result() == Purged(0, 0, 0)
    store.close()


def test_longest_unused_sessions_leave_until_the_size_fits(tmp_path: Path) -> None:
    store = filled(tmp_path)
    assert store.run(lambda db: purge(db, days=999, max_bytes=10)).result().sessions == 2
    assert queries.stats(store._db)["messages"] == 0
    store.close()
