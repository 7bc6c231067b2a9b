"""What the classifier has spent today, in one row a day that all processes on a data folder share."""

from __future__ import annotations

import sqlite3

import msgspec


class Limits(msgspec.Struct, frozen=True):
    """The most of a day; None = no limit of this sort."""

    requests: int
    tokens: int
    usd: float | None = None


def reserve(db: sqlite3.Connection, day: str, limits: Limits) -> bool:
    """Counts one more request of a day (YYYY-MM-DD), unless one of the limits is reached already."""
    db.execute("INSERT OR IGNORE INTO classifier_spending VALUES (?, 0, 0, 0)", (day,))
    counted = db.execute(
        "UPDATE classifier_spending SET requests = requests + 1"
        " WHERE day = ?1 AND requests < ?2 AND tokens < ?3 AND (?4 IS NULL OR usd < ?4)",
        (day, limits.requests, limits.tokens, limits.usd),
    )
    return counted.rowcount == 1


def spend(db: sqlite3.Connection, day: str, tokens: int, usd: float) -> None:
    """Adds what a request has cost."""
    db.execute("UPDATE classifier_spending SET tokens = tokens + ?, usd = usd + ? WHERE day = ?", (tokens, usd, day))
