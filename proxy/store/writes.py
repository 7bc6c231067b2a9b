"""Turns batches into rows; every text passes the sealer on its way to the disk."""

from __future__ import annotations

import sqlite3
from functools import partial
from hashlib import blake2b
from itertools import zip_longest

import msgspec

from proxy.compaction.receipt import Receipt, ToolCall
from proxy.lineage.records import BranchRecord, BranchState, Changes
from proxy.redaction import Sealer
from proxy.store.fact_rows import Event, FactRows
from proxy.store.frames import FrameWriter
from proxy.store.rows import Batch, Learnt, Reply, SessionRow, now
from proxy.store.sealing import Sealing
from proxy.transcript import Message

_NAMES = 1000  # kept in memory
_encode = msgspec.json.Encoder().encode


def scope_of(tenant: str, namespace: str) -> bytes:
    """Gives the 8 bytes that keep the look-up hashes of tenants and namespaces apart."""
    return blake2b(f"{tenant}\n{namespace}".encode("utf-8", "surrogatepass"), digest_size=8).digest()


class Writer:
    """Writes batches through one connection; its caller begins and commits the transaction."""

    def __init__(self, db: sqlite3.Connection, seal: Sealer) -> None:
        self._db = db
        self._seal = seal
        self._sealing = Sealing(db, seal)
        self._names: dict[tuple[str, str], str] = {}
        self._facts = FactRows(db, self._sealing.json)
        self._frames = FrameWriter(db)
        self._forgotten: set[str] = set()
        self._newest_forgotten = 0

    def write(self, batch: Batch) -> list[Event]:
        """Writes one batch, unless it belongs to what was forgotten meanwhile. Gives the fact events that it made."""
        if self._of_forgotten(batch):
            return []
        at = batch.at or now()
        if batch.session:
            self._session(batch, batch.session, at)
        for message, tokens in batch.messages:
            self._message(batch.tenant, message, tokens, at)
        for change in batch.lineage:
            self._lineage(batch, change, at)
        self._path(batch, at)
        self._records(batch, at)
        if not batch.facts:
            return []
        return self._facts.take(batch.tenant, self._name(batch.tenant, batch.namespace), batch.facts)

    def learn_forgotten(self) -> None:
        """Takes note of what other processes, or retention, have taken away; to be called in each transaction."""
        rows = self._db.execute(
            "SELECT seq, id FROM forgotten WHERE seq > ? AND gone ORDER BY seq", (self._newest_forgotten,)
        )
        for seq, name in rows:
            self._newest_forgotten = seq
            self._forgotten.add(name)

    def _of_forgotten(self, batch: Batch) -> bool:
        if not self._forgotten:
            return False
        told = [batch.branch, batch.session.id if batch.session else "", *(one.branch for one in batch.insertions)]
        told += [batch.receipt.session] if batch.receipt else []
        return not self._forgotten.isdisjoint(told)

    def _records(self, batch: Batch, at: str) -> None:
        for insertion in batch.insertions:
            record = self._sealing.json(batch.tenant, _encode(insertion).decode())
            self._db.execute(
                "INSERT INTO insertions (id, branch, tenant, record) VALUES (?, ?, ?, ?)"
                " ON CONFLICT (branch, id) DO NOTHING",
                (insertion.id, insertion.branch, batch.tenant, record),
            )
        if batch.receipt:
            calls = tuple(batch.calls()) if batch.calls else ()
            self._receipt(batch, msgspec.structs.replace(batch.receipt, calls=calls) if calls else batch.receipt)
        if batch.answer:
            record = self._sealing.json(batch.tenant, _encode(batch.answer).decode())
            row = (batch.request, batch.branch, batch.tenant, record)
            self._db.execute("INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?)", row)
        if batch.reply:
            self._reply(batch, batch.reply)
        if batch.learnt:
            self._learnt(batch.learnt)
        for branch, plan in batch.quarantine:
            self._db.execute("INSERT OR IGNORE INTO quarantine VALUES (?, ?, ?)", (branch, plan, at))

    def _name(self, tenant: str, text: str) -> str:
        """Seals a name that comes again with each request."""
        if (tenant, text) not in self._names:
            if len(self._names) >= _NAMES:
                self._names.clear()
            self._names[tenant, text] = self._sealing.plain(tenant, text)
        return self._names[tenant, text]

    def _session(self, batch: Batch, row: SessionRow, at: str) -> None:
        project, model = self._name(batch.tenant, row.project), self._name(batch.tenant, row.model)
        self._db.execute(
            "INSERT INTO sessions VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7, ?8) ON CONFLICT (id) DO UPDATE SET"
            " updated_at = excluded.updated_at, requests = requests + excluded.requests,"
            " project = iif(excluded.project = '', project, excluded.project),"
            " model = iif(excluded.model = '', model, excluded.model),"
            " client = iif(excluded.client = '', client, excluded.client)",
            (
                row.id,
                batch.tenant,
                self._name(batch.tenant, batch.namespace),
                project,
                row.client,
                model,
                at,
                row.requests,
            ),
        )

    def _message(self, tenant: str, message: Message, tokens: int, at: str) -> None:
        known = self._db.execute(
            "SELECT tokens FROM messages WHERE tenant = ? AND digest = ?", (tenant, message.digest)
        ).fetchone()
        if known is None:
            body = self._sealing.json(tenant, message.raw.decode("utf-8", "surrogateescape"))
            self._db.execute(
                "INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?)",
                (tenant, message.digest, self._name(tenant, message.role), body, tokens, at),
            )
        elif tokens and tokens != known[0]:
            self._db.execute(
                "UPDATE messages SET tokens = ? WHERE tenant = ? AND digest = ?", (tokens, tenant, message.digest)
            )

    def _lineage(self, batch: Batch, change: Changes, at: str) -> None:
        if change.branch:
            self._branch(batch, change.branch, at)
        states = (*change.states, change.state) if change.state else change.states
        for state in states:
            self._db.execute(
                "UPDATE branches SET state = ?, updated_at = ? WHERE id = ?",
                (self._state(batch.tenant, state), at, state.id),
            )
        if change.marks and change.state:
            self._db.executemany(
                "INSERT OR IGNORE INTO marks VALUES (?, ?, ?, ?)",
                [(change.state.id, mark.kind, mark.hash, mark.other) for mark in change.marks],
            )
        if change.hints:
            scope = scope_of(batch.tenant, batch.namespace)
            self._db.executemany(
                "INSERT OR IGNORE INTO hints VALUES (?, ?, ?)",
                [(scope, hint.hash, hint.branch) for hint in change.hints],
            )
        if change.emission:
            record = self._sealing.json(batch.tenant, _encode(change.emission).decode())
            self._db.execute("INSERT OR REPLACE INTO emissions VALUES (?, ?)", (change.emission.id, record))
            self._db.executemany(
                "INSERT OR IGNORE INTO emission_branches VALUES (?, ?)",
                [(branch, change.emission.id) for branch in change.emission.branches],
            )

    def _branch(self, batch: Batch, record: BranchRecord, at: str) -> None:
        text = self._sealing.json(batch.tenant, _encode(record).decode())
        self._db.execute(
            "INSERT INTO branches VALUES (?, ?, ?, ?, ?, ?, ?, 0, ?, '', ?) ON CONFLICT (id) DO UPDATE SET"
            " kind = excluded.kind, parent = excluded.parent, epoch = excluded.epoch,"
            " record = excluded.record, updated_at = excluded.updated_at",
            (
                record.id,
                record.session,
                batch.tenant,
                self._name(batch.tenant, batch.namespace),
                record.kind,
                record.parent,
                record.epoch,
                text,
                at,
            ),
        )

    def _state(self, tenant: str, state: BranchState) -> str:
        """A state is only numbers and hashes but for the closing words of the newest answer."""
        words = "\n".join([key.text for key in state.answer])
        return self._sealing.json(tenant, _encode(state).decode(), words)

    def _path(self, batch: Batch, at: str) -> None:
        if batch.path:
            self._db.executemany(
                "INSERT OR REPLACE INTO paths VALUES (?, ?, ?, ?)",
                [(batch.branch, pos, batch.request, digest) for pos, digest in batch.path],
            )
        if batch.length is not None:
            self._db.execute(
                "UPDATE branches SET length = ?, updated_at = ? WHERE id = ?", (batch.length, at, batch.branch)
            )

    def _receipt(self, batch: Batch, receipt: Receipt) -> None:
        tenant = batch.tenant
        if batch.sent:
            receipt = self._frames.told(receipt, tenant, batch.sent, partial(self._sealing.json, tenant))
        record = self._sealing.json(tenant, _encode(receipt).decode(), receipt.words)
        self._db.execute(
            "INSERT INTO receipts (id, at, tenant, session, branch, record) VALUES (?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (id) DO UPDATE SET record = excluded.record",
            (receipt.id, receipt.at, tenant, receipt.session, receipt.branch, record),
        )
        if receipt.calls:
            self._db.execute("DELETE FROM tool_calls WHERE receipt = ?", (receipt.id,))
            rows = [
                (
                    receipt.id,
                    receipt.session,
                    receipt.branch,
                    call.id,
                    call.name,
                    call.arguments,
                    call.outcome,
                    call.origin,
                )
                for call in self._masked_calls(tenant, receipt, record)
            ]
            self._db.executemany("INSERT INTO tool_calls VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)

    def _masked_calls(self, tenant: str, receipt: Receipt, record: str) -> tuple[ToolCall, ...]:
        """Gives the calls as they stand in the sealed record: each search for secrets costs as much as a row."""
        try:
            return msgspec.json.decode(record, type=Receipt).calls
        except msgspec.ValidationError:  # it could only be sealed whole
            return tuple(
                msgspec.structs.replace(
                    call,
                    id=self._sealing.plain(tenant, call.id),
                    name=self._name(tenant, call.name),
                    outcome=self._sealing.plain(tenant, call.outcome),
                )
                for call in receipt.calls
            )

    def _reply(self, batch: Batch, reply: Reply) -> None:
        scope = scope_of(batch.tenant, batch.namespace)
        self._db.execute(
            "INSERT OR REPLACE INTO replies VALUES (?, ?, ?, ?, ?, ?)",
            (scope, reply.id, batch.branch, batch.request, reply.length, _encode(reply.insertions).decode()),
        )
        self._db.executemany(
            "INSERT OR REPLACE INTO reply_items VALUES (?, ?, ?, ?, ?, ?)",
            [
                (batch.tenant, batch.branch, batch.request, pos, digest, item)
                for pos, (digest, item) in enumerate(zip_longest(reply.items, reply.names, fillvalue=""))
            ],
        )

    def _learnt(self, learnt: Learnt) -> None:
        self._db.execute(
            "INSERT OR REPLACE INTO learnt VALUES (?, ?, ?, ?, ?, ?)",
            (
                learnt.upstream,
                self._seal.mask(learnt.model),
                learnt.ratio,
                learnt.samples,
                learnt.window,
                learnt.window_until,
            ),
        )
