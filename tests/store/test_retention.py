"""Forgetting by age and by size."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path

from proxy.redaction import Sealer
from proxy.store import queries
from proxy.store.retention import FactPolicy, Purged, purge
from proxy.store.sqlite import Store
from proxy.store.views import file_name
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


def test_facts_go_by_kind_and_status_and_what_is_active_or_promoted_stays(tmp_path: Path) -> None:
    store = Store.open(tmp_path, Sealer(KEY))
    told = (
        stated("p1", "Do it once.", "expired"),
        stated("p2", "Use tabs.", "retracted"),
        stated("p3", "Be brief.", kind="preference"),
        stated("p4", "Ship it.", "closed", kind="goal"),
        stated("p5", "Known.", "expired", promoted="2026-01-01"),
    )
    store.submit(asked(said("goal"), facts=told)).result()
    later = datetime.now(UTC) + timedelta(days=40)
    policy = FactPolicy({"expired": 30, "goal": 300, "goal/closed": 20, "retracted": 60})
    gone = store.run(lambda db: purge(db, days=999, max_bytes=10**9, facts=policy, now=later)).result()
    assert gone == Purged(0, 0, 0, facts=2)
    assert [one["pin"] for one in queries.facts(store._db)["facts"]] == ["p2", "p3", "p5"]
    lines = (tmp_path / "facts" / file_name("/srv/shop")).read_text()
    assert "Do it once." not in lines
    assert "Be brief." in lines
    gone = store.run(lambda db: purge(db, days=999, max_bytes=10**9, facts=FactPolicy(max_bytes=1), now=later)).result()
    assert [one["pin"] for one in queries.facts(store._db)["facts"]] == ["p3", "p5"]
    store.close()
    page = (tmp_path / "facts" / file_name("/srv/shop", "md")).read_text()
    assert "Be brief." in page
    assert "Use tabs." not in page
