"""Sealed text on its way into the tables: whoever writes one keeps the values beside it, under its tenant."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from proxy.redaction import Sealed, Sealer


class Sealing:
    """Seals texts inside the caller's transaction."""

    def __init__(self, db: sqlite3.Connection, seal: Sealer) -> None:
        self._db = db
        self._seal = seal

    def json(self, tenant: str, text: str, words: str | None = None) -> str:
        """Gives JSON in the form in which it is stored.

        `words` are all in it that isn't our own: where nothing in them is sealed, the rest needn't be searched.
        """
        if words is not None and self._seal.leaves(words):
            return text
        masked, secrets = self._seal.seal_json(text)
        self._keep(tenant, secrets)
        return masked

    def plain(self, tenant: str, text: str) -> str:
        """Gives a text that isn't JSON in the form in which it is stored."""
        masked, secrets = self._seal.seal(text)
        self._keep(tenant, secrets)
        return masked

    def _keep(self, tenant: str, secrets: Iterable[Sealed]) -> None:
        for secret in secrets:
            self._db.execute("INSERT OR IGNORE INTO secrets VALUES (?, ?, ?, ?)", (tenant, *secret))
