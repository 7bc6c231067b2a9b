"""Reads for the proxy itself: small, by key, unsealed."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import msgspec

from proxy.compaction.insertion import Insertion
from proxy.lineage.records import BranchRecord, BranchState, EmissionRecord, Mark, StoredBranch
from proxy.redaction import Sealer
from proxy.store.frames import expanded, references
from proxy.store.rows import Kept, Learnt, Loaded, PinEdit
from proxy.store.writes import scope_of
from proxy.transcript import digest_of

T = TypeVar("T")
_CHUNK = 500  # values in one statement


class Reads:
    """Reads through one connection, on the caller's thread."""

    def __init__(self, db: sqlite3.Connection, seal: Sealer) -> None:
        self._db = db
        self._seal = seal

    def load_branches(self, tenant: str, namespace: str, hashes: Sequence[bytes]) -> list[Loaded]:
        """Gives the branches that are known under any of these hashes, the oldest first."""
        scope = scope_of(tenant, namespace)
        found: dict[str, None] = {}
        for part in _chunks(hashes):
            sql = f"SELECT DISTINCT branch FROM hints WHERE scope = ? AND hash IN ({_marks(part)})"  # noqa: S608 — only ?s
            found.update((branch, None) for (branch,) in self._db.execute(sql, (scope, *part)))
        loaded = (self.load_branch(tenant, branch) for branch in sorted(found))
        return [branch for branch in loaded if branch]

    def load_branch(self, tenant: str, branch: str) -> Loaded | None:
        """Gives one branch, or None when it isn't stored, not this tenant's, or nothing was asked on it yet."""
        row = self._db.execute(
            "SELECT record, state, length FROM branches WHERE id = ? AND tenant = ? AND state != ''", (branch, tenant)
        ).fetchone()
        if row is None:
            return None
        record = msgspec.json.decode(self.unsealed(tenant, row[0]), type=BranchRecord)
        state = msgspec.json.decode(self.unsealed(tenant, row[1]), type=BranchState)
        stored = StoredBranch(record, state, self._marks(branch), self._emissions(tenant, branch))
        return Loaded(stored, self.path(branch, row[2]), self.insertions(branch))

    def path(self, branch: str, length: int, until: str = "~") -> tuple[str, ...]:
        """Gives the digests of a branch's messages as they stood with the receipt `until`; by default the newest."""
        rows = self._db.execute(
            "SELECT pos, max(since), digest FROM paths WHERE branch = ? AND pos < ? AND since <= ?"
            " GROUP BY pos ORDER BY pos",
            (branch, length, until),
        )
        return tuple(digest for _, _, digest in rows)

    def reply(self, tenant: str, namespace: str, name: str) -> Kept | None:
        """Gives what an upstream keeps under an id, None when it isn't known here."""
        row = self._db.execute(
            "SELECT branch, receipt, length, insertions FROM replies WHERE scope = ? AND id = ?",
            (scope_of(tenant, namespace), name),
        ).fetchone()
        if row is None:
            return None
        branch, receipt, length, insertions = row
        items = self._db.execute("SELECT digest FROM reply_items WHERE receipt = ? ORDER BY pos", (receipt,))
        path = (*self.path(branch, length, receipt), *(digest for (digest,) in items))
        return Kept(branch, path, tuple(msgspec.json.decode(insertions, type=list[str])))

    def items(self, tenant: str, names: Iterable[str]) -> dict[str, str]:
        """Gives the digests of items by the upstream's own ids; one that isn't known here is left out."""
        found: dict[str, str] = {}
        for part in _chunks(list(names)):
            sql = f"SELECT item, digest FROM reply_items WHERE tenant = ? AND item <> '' AND item IN ({_marks(part)})"  # noqa: S608
            found.update(self._db.execute(sql, (tenant, *part)))
        return found

    def insertions(self, branch: str) -> tuple[Insertion, ...]:
        """Gives the insertions of a branch, the oldest first."""
        rows = self._db.execute("SELECT tenant, record FROM insertions WHERE branch = ? ORDER BY seq", (branch,))
        return tuple(msgspec.json.decode(self.unsealed(tenant, text), type=Insertion) for tenant, text in rows)

    def load_messages(self, tenant: str, digests: Iterable[str]) -> dict[str, bytes]:
        """Gives the bytes of messages as the client sent them; one that isn't stored is left out."""
        return {
            digest: self.unsealed(tenant, body).encode("utf-8", "surrogateescape")
            for digest, body in self._of_messages(tenant, "body", digests)
        }

    def frame(self, tenant: str, session: str, digest: str) -> bytes | None:
        """Gives what stood around the messages of a body, None when it isn't stored any more, or not as it was."""
        rows = self._frames(tenant, session, [digest])
        if digest not in rows:
            return None
        return expanded(rows[digest], self._frames(tenant, session, references(rows[digest])))

    def _frames(self, tenant: str, session: str, digests: Sequence[str]) -> dict[str, bytes]:
        sql = f"SELECT digest, body FROM frames WHERE tenant = ? AND session = ? AND digest IN ({_marks(digests)})"  # noqa: S608
        rows = self._db.execute(sql, (tenant, session, *digests))
        texts = {digest: self.unsealed(tenant, body).encode("utf-8", "surrogateescape") for digest, body in rows}
        return {digest: text for digest, text in texts.items() if digest_of(text) == digest}

    def tokens_of(self, tenant: str, digests: Iterable[str]) -> dict[str, int]:
        """Gives the token counts of messages; one that isn't stored or counted is left out."""
        return {digest: tokens for digest, tokens in self._of_messages(tenant, "tokens", digests) if tokens}

    def pin_edits(self, session: str, after_seq: int = 0) -> tuple[PinEdit, ...]:
        """Gives what people changed by hand in a session after an edit, the oldest first."""
        rows = self._db.execute(
            "SELECT seq, session, action, pin, kind, text, at, tenant, rule, turn, start, stop FROM pin_edits"
            " WHERE session = ? AND seq > ? ORDER BY seq",
            (session, after_seq),
        )
        return tuple(
            PinEdit(
                seq, of, action, pin, kind, self.unsealed(tenant, text), at,
                rule, bytes.fromhex(turn), (start, stop) if turn else None,
            )
            for seq, of, action, pin, kind, text, at, tenant, rule, turn, start, stop in rows
        )  # fmt: skip

    def forgotten(self, after_seq: int = -1) -> tuple[int, frozenset[str]]:
        """Gives the number of the newest note of what was forgotten, and the ids in notes after `after_seq`."""
        rows = self._db.execute("SELECT seq, id FROM forgotten WHERE seq > ? ORDER BY seq", (after_seq,)).fetchall()
        return (rows[-1][0] if rows else max(after_seq, 0)), frozenset(name for _, name in rows)

    def learnt(self, upstream: str, model: str) -> Learnt | None:
        """Gives what an upstream taught about a model, None when nothing."""
        row = self._db.execute(
            "SELECT * FROM learnt WHERE upstream = ? AND model = ?", (upstream, self._seal.mask(model))
        ).fetchone()
        return Learnt(*row) if row else None

    def quarantined(self, branch: str) -> frozenset[str]:
        """Gives the plans of a branch whose body an upstream refused."""
        return frozenset(p for (p,) in self._db.execute("SELECT plan FROM quarantine WHERE branch = ?", (branch,)))

    def unsealed(self, tenant: str, text: str) -> str:
        """Gives a stored text with the secret values in their places, as far as the key opens them."""

        def lookup(token: str) -> tuple[bytes, bytes] | None:
            row = self._db.execute(
                "SELECT nonce, sealed FROM secrets WHERE tenant = ? AND token = ?", (tenant, token)
            ).fetchone()
            return (row[0], row[1]) if row else None

        return self._seal.unseal(text, lookup)

    def _marks(self, branch: str) -> tuple[Mark, ...]:
        rows = self._db.execute("SELECT kind, hash, other FROM marks WHERE branch = ?", (branch,))
        return tuple(Mark(*row) for row in rows)

    def _emissions(self, tenant: str, branch: str) -> tuple[EmissionRecord, ...]:
        rows = self._db.execute(
            "SELECT record FROM emission_branches JOIN emissions ON id = emission WHERE branch = ? ORDER BY emission",
            (branch,),
        )
        return tuple(msgspec.json.decode(self.unsealed(tenant, text), type=EmissionRecord) for (text,) in rows)

    def _of_messages(self, tenant: str, column: str, digests: Iterable[str]) -> Iterable[tuple[str, Any]]:
        for part in _chunks(list(digests)):
            sql = f"SELECT digest, {column} FROM messages WHERE tenant = ? AND digest IN ({_marks(part)})"  # noqa: S608
            yield from self._db.execute(sql, (tenant, *part))


def _chunks(values: Sequence[T]) -> Iterable[Sequence[T]]:
    return (values[at : at + _CHUNK] for at in range(0, len(values), _CHUNK))


def _marks(values: Sequence[object]) -> str:
    return ",".join("?" * len(values))
