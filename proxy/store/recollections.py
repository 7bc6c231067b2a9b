"""Reads what was promoted in a project, for sessions that begin there."""

from __future__ import annotations

import sqlite3

import msgspec

from proxy.facts import Known
from proxy.store.fact_rows import BY_HAND


def promoted(db: sqlite3.Connection, tenant: str, project: str, namespace: str | None) -> tuple[Known, ...]:
    """Gives the promoted facts of a tenant's project that hold, masked; of one namespace (and by hand), or of all."""
    rows = db.execute(
        "SELECT record FROM facts WHERE project = ?1 AND tenant = ?2 AND status = 'active' AND kind != 'goal'"
        " AND (?3 IS NULL OR namespace IN (?3, ?4)) AND coalesce(json_extract(record, '$.promoted'), '') != ''"
        " ORDER BY id",
        (project, tenant, namespace, BY_HAND),
    )
    facts = [msgspec.json.decode(record) for (record,) in rows]
    return tuple(Known(one["id"], one["kind"], one["text"], one["observed_at"][:10]) for one in facts)
