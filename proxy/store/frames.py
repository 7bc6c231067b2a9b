"""What stands around the messages of a body that was sent: kept once a session, so that the very bytes can be rebuilt.

Large values (tools, system text) are rows of their own, since the rest of a frame may change with each request.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping

import msgspec

from proxy.compaction.receipt import Receipt
from proxy.transcript import Transcript, digest_of

LARGE = 512  # bytes from which a value is a row of its own
MOST_WHOLE = 64 << 10  # bytes of a body that is kept as a whole, since its parts don't give it back
WHOLE = "whole"  # the gap of such a body
_FRAMES = 64  # frames whose digest is remembered
_MARK = b'"[frame:'
_REFERENCE = re.compile(rb'"\[frame:([0-9a-f]{32})\]"')

Seal = Callable[[str], str]


class Sent(msgspec.Struct, frozen=True):
    """A body as it went out, and the request that it was made of."""

    body: bytes
    transcript: Transcript
    own: bool  # the client's own bytes


class FrameWriter:
    """Keeps frames, and writes into a receipt what the body can be rebuilt and checked by; runs beside the requests."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._known: dict[tuple[str, bytes, bytes], str] = {}

    def told(self, receipt: Receipt, tenant: str, sent: Sent, seal: Seal) -> Receipt:
        """Gives the receipt with the body's digest, its frame, and what stood between its messages."""
        gap = _gap(sent) if sent.own else ","
        transcript, frame = sent.transcript, ""
        if gap == WHOLE and len(sent.body) <= MOST_WHOLE:
            frame = self._row(receipt.session, tenant, sent.body, seal)
        elif gap != WHOLE:
            known = (receipt.session, transcript.head, transcript.tail)
            frame = self._known.get(known, "")
            if not frame or not self._has(receipt.session, frame):  # retention may have taken it
                frame = self._frame(receipt.session, tenant, transcript, seal)
                if len(self._known) >= _FRAMES:
                    self._known.clear()
                self._known[known] = frame
        return msgspec.structs.replace(receipt, sent=digest_of(sent.body), frame=frame, gap=gap if frame else "")

    def _frame(self, session: str, tenant: str, transcript: Transcript, seal: Seal) -> str:
        text = transcript.head + transcript.tail
        if _MARK not in text:
            for value in _large(transcript):
                if value in text:
                    mark = f'"[frame:{self._row(session, tenant, value, seal)}]"'
                    text = text.replace(value, mark.encode())
        return self._row(session, tenant, text, seal)

    def _has(self, session: str, digest: str) -> bool:
        found = self._db.execute("SELECT 1 FROM frames WHERE session = ? AND digest = ?", (session, digest))
        return found.fetchone() is not None

    def _row(self, session: str, tenant: str, text: bytes, seal: Seal) -> str:
        digest = digest_of(text)
        if not self._has(session, digest):
            masked = seal(text.decode("utf-8", "surrogateescape"))
            self._db.execute("INSERT INTO frames VALUES (?, ?, ?, ?)", (session, digest, tenant, masked))
        return digest


def _gap(sent: Sent) -> str:
    """Gives what stands between the messages of a body, WHOLE when its parts don't give it back."""
    head, tail = sent.transcript.head, sent.transcript.tail
    raws = [message.raw for message in sent.transcript.messages]
    rest = len(sent.body) - len(head) - len(tail) - sum(map(len, raws))
    gap = b","
    if len(raws) > 1:
        start = len(head) + len(raws[0])
        gap = sent.body[start : start + rest // (len(raws) - 1)]
    return gap.decode("ascii", "replace") if head + gap.join(raws) + tail == sent.body else WHOLE


def _large(transcript: Transcript) -> Iterator[bytes]:
    """Gives the large values around the messages; system text in blocks block by block, for its first may change."""
    for name, value in {**transcript.options, "tools": transcript.tools_raw}.items():
        if len(value) < LARGE:
            continue
        if name == "system" and value.startswith(b"["):
            yield from (
                raw for block in msgspec.json.decode(value, type=list[msgspec.Raw]) if len(raw := bytes(block)) >= LARGE
            )
        else:
            yield value


def expanded(frame: bytes, rows: Mapping[str, bytes]) -> bytes | None:
    """Gives a frame with its large values in their places, None when one of them isn't stored any more."""
    if any(digest.decode() not in rows for digest in _REFERENCE.findall(frame)):
        return None
    return _REFERENCE.sub(lambda found: rows[found[1].decode()], frame)


def references(frame: bytes) -> list[str]:
    """Gives the digests of a frame's large values."""
    return [digest.decode() for digest in _REFERENCE.findall(frame)]
