"""Builds what a receipt says was forwarded once more, and checks it against what it promises."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

import msgspec

from proxy.clients import Profiles
from proxy.compaction.insertion import Insertion
from proxy.compaction.outgoing import Renderer, body_of
from proxy.compaction.receipt import Receipt, body_digest
from proxy.compaction.repair import MENDED, repaired
from proxy.compaction.rewrite import Piece, Writer, apply
from proxy.compaction.validity import ITEMISED, of_dialect
from proxy.compaction.view import View
from proxy.lineage.keys import KeyReader
from proxy.pins.model import Ledger
from proxy.store.frames import WHOLE
from proxy.store.reads import Reads
from proxy.store.redacting import FORGOTTEN
from proxy.transcript import Message, Transcript, digest_of

_HUMAN_ROLES = ("user", "tool", "function")


class Reader(Writer, Renderer, Protocol):
    """What replaying needs of a dialect."""

    def message(self, raw: bytes) -> Message:
        """Reads one message."""

    def parse(self, body: bytes) -> Transcript:
        """Reads a request. Raises UnreadableBody."""


class Replayed(msgspec.Struct, frozen=True):
    """One request as it came and as it was forwarded."""

    receipt: Receipt
    client: tuple[Message, ...]
    forwarded: tuple[Message, ...]
    insertions: tuple[Insertion, ...]
    pieces: tuple[Piece, ...] = ()  # of the forwarded messages
    mended: tuple[
        Message, ...
    ] = ()  # the forwarded messages where results without calls became text, () where none did
    missing: tuple[str, ...] = ()  # digests of messages, ids of insertions that the store doesn't have


class Replay:
    """Rebuilds forwarded bodies from the store."""

    def __init__(self, reads: Reads, profiles: Profiles, dialects: Mapping[str, Reader]) -> None:
        self._reads = reads
        self._profiles = profiles
        self._dialects = dialects
        self._keys = KeyReader()

    def rebuild(self, tenant: str, receipt: Receipt) -> Replayed | None:
        """Gives what the receipt's request was and became, None for requests that keep no path (side calls)."""
        dialect = self._dialects.get(receipt.dialect)
        digests = self._reads.path(receipt.track, receipt.messages, receipt.id)
        if dialect is None or not digests:
            return None
        bodies = self._reads.load_messages(tenant, digests)
        stored = {one.id: one for one in self._reads.insertions(receipt.track)}
        insertions = tuple(stored[name] for name in receipt.insertions if name in stored)
        missing = [digest for digest in digests if digest not in bodies]
        missing += [name for name in receipt.insertions if name not in stored]
        if _forgotten(bodies, insertions):
            return None  # a person took words out of it: it can't be what was sent
        messages = tuple(dialect.message(bodies[digest]) for digest in digests if digest in bodies)
        view = self._view(receipt, messages)
        pieces: tuple[Piece, ...] = ()
        for alternate in (False, True):  # whether roles had to alternate isn't stored: the digest tells
            pieces = apply(insertions, view, dialect, alternate=alternate)
            if receipt.forwarded == body_digest(piece.digest for piece in pieces):
                break
        forwarded = tuple(dialect.message(piece.raw) for piece in pieces)
        mended: Sequence[bytes] = ()
        if MENDED in receipt.flags:
            mended = repaired(forwarded, dialect, near=receipt.dialect not in ITEMISED) or ()
        sound = tuple(map(dialect.message, mended))
        return Replayed(receipt, messages, forwarded, insertions, pieces, sound, tuple(missing))

    def body(self, tenant: str, replayed: Replayed) -> bytes | None:
        """Gives the very bytes that were sent, None when the store doesn't hold (any more) what they are made of."""
        receipt = replayed.receipt
        frame = self._reads.frame(tenant, receipt.session, receipt.frame) if receipt.frame else None
        if frame is None or replayed.missing:
            return None
        if receipt.gap == WHOLE:
            return frame
        dialect = self._dialects[receipt.dialect]
        transcript = dialect.parse(frame)
        if not receipt.changed:
            gap = receipt.gap.encode()
            return transcript.head + gap.join(message.raw for message in replayed.client) + transcript.tail
        return body_of(dialect, transcript, replayed, [one.raw for one in replayed.mended or replayed.forwarded])

    def _view(self, receipt: Receipt, messages: tuple[Message, ...]) -> View:
        path = self._keys.path(messages, self._profiles.named(receipt.client))
        transcript = Transcript(receipt.dialect, receipt.model, messages, (), b"", False, 0, "", b"", b"")  # noqa: FBT003
        return View(transcript, path.keys, path.chain, (), (), 0, Ledger(), (), ())


def _forgotten(bodies: Mapping[str, bytes], insertions: Sequence[Insertion]) -> bool:
    if any(FORGOTTEN in one.text for one in insertions):
        return True
    mark = FORGOTTEN.encode()
    return any(mark in body and digest_of(body) != digest for digest, body in bodies.items())


def faults(replayed: Replayed, pin_texts: Mapping[str, str]) -> Iterator[str]:
    """Gives what is wrong with one forwarded body."""
    for name in replayed.missing:
        yield f"{name} is not in the store any more"
    if replayed.missing:
        return
    receipt = replayed.receipt
    pairing = of_dialect(receipt.dialect, strict=False)[0]
    if MENDED in receipt.flags and not replayed.mended:
        yield "repair: it was said to be mended, and nothing in it is to mend"
    own = frozenset() if replayed.mended else pairing.faults(replayed.client)
    for fault in sorted(pairing.faults(replayed.mended or replayed.forwarded) - own):
        yield f"pairing: {fault}"
    lost = [pin for pin in receipt.pins if pin in pin_texts and not _stands(pin, pin_texts[pin], replayed)]
    if len(receipt.pins) - len(lost) < receipt.pins_present:
        yield f"pins: {receipt.pins_present} were said to be present, these are not: {', '.join(lost)}"
    if receipt.forwarded and receipt.forwarded != body_digest(message.digest for message in replayed.forwarded):
        yield "forwarded: the messages that were sent are not those that the store gives back"


def _stands(pin: str, text: str, replayed: Replayed) -> bool:
    if any(pin in one.pins for one in replayed.insertions):
        return True
    return any(text in message.text for message in replayed.forwarded if message.role in _HUMAN_ROLES)


def prefix_fault(before: Replayed | None, after: Replayed) -> str:
    """Gives what is wrong between two requests of a branch: one that only adds must not touch what was sent."""
    if before is None or before.missing or after.missing:
        return ""
    same = before.receipt.insertions == after.receipt.insertions
    if not same or not _begins(before.client, after.client) or _begins(before.forwarded, after.forwarded):
        return ""
    return f"prefix: messages sent with {before.receipt.id} were changed though the client only added to them"


def byte_fault(replayed: Replayed, body: bytes | None) -> str:
    """Gives what is wrong with a rebuilt body, "" when it is the one that was sent, or can't be rebuilt."""
    if body is None or not replayed.receipt.sent or digest_of(body) == replayed.receipt.sent:
        return ""
    return "bytes: the body that was sent is not the one that the store gives back"


def _begins(start: Sequence[Message], whole: Sequence[Message]) -> bool:
    return [m.digest for m in start] == [m.digest for m in whole[: len(start)]]


class Problem(msgspec.Struct, frozen=True):
    """One thing that a stored receipt promises and the store doesn't bear out."""

    receipt: str
    text: str


class Report(msgspec.Struct, frozen=True):
    """What a check of all receipts found; receipts of side calls keep no path and aren't rebuilt."""

    receipts: int
    rebuilt: int
    exact: int  # of these, those whose very bytes could be built again
    problems: tuple[Problem, ...]


def verify(db: sqlite3.Connection, reads: Reads, replay: Replay) -> Report:
    """Checks every receipt again, oldest first."""
    last: dict[str, Replayed] = {}
    texts = _pin_texts(db, reads)
    receipts = rebuilt = exact = 0
    problems: list[Problem] = []
    for tenant, record in db.execute("SELECT tenant, record FROM receipts ORDER BY seq"):
        receipts += 1
        receipt = msgspec.json.decode(reads.unsealed(tenant, record), type=Receipt)
        replayed = replay.rebuild(tenant, receipt)
        if replayed is None:
            continue
        rebuilt += 1
        found = [*faults(replayed, texts.get(receipt.session, {})), prefix_fault(last.get(receipt.track), replayed)]
        body = replay.body(tenant, replayed)
        exact += body is not None
        found.append(byte_fault(replayed, body))
        problems += [Problem(receipt.id, fault) for fault in found if fault]
        last[receipt.track] = replayed
    return Report(receipts, rebuilt, exact, tuple(problems))


def _pin_texts(db: sqlite3.Connection, reads: Reads) -> dict[str, dict[str, str]]:
    texts: dict[str, dict[str, str]] = {}
    for tenant, session, pin, record in db.execute("SELECT tenant, session, pin, record FROM facts"):
        fact = msgspec.json.decode(reads.unsealed(tenant, record))
        texts.setdefault(session, {})[pin] = str(fact["quote"] or fact["text"])  # a person may have reworded it
    return texts
