"""What the store knows, as the JSON doors under /admin show it."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from functools import partial

from proxy.store import queries
from proxy.web.doors import Lister, Shower


def lists(db: sqlite3.Connection) -> Mapping[str, Lister]:
    """Gives the doors /admin/NAME; a query narrows what is shown."""
    return {
        "facts": partial(queries.facts, db),
        "sessions": partial(queries.sessions, db),
        "receipts": partial(queries.receipts, db),
        "pins": partial(queries.pins, db),
        "stats": partial(queries.stats, db),
    }


def items(db: sqlite3.Connection) -> Mapping[str, Shower]:
    """Gives the doors /admin/NAME/ID."""
    return {
        "facts": partial(queries.fact, db),
        "sessions": partial(queries.session, db),
        "receipts": partial(queries.receipt, db),
    }
