"""What the store takes and gives: plain rows, one batch for each step of a request."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Literal

import msgspec

from proxy.compaction.insertion import Insertion
from proxy.compaction.receipt import Receipt, ToolCall
from proxy.facts import FactChange
from proxy.lineage.records import Changes, StoredBranch
from proxy.store.frames import Sent
from proxy.transcript import Answer, Message

Action = Literal["add", "close", "retract"]


class SessionRow(msgspec.Struct, frozen=True):
    """A session as a request shows it; `requests` counts how many this batch adds."""

    id: str
    client: str = ""  # profile name
    model: str = ""
    project: str = ""
    requests: int = 1


class Learnt(msgspec.Struct, frozen=True):
    """What an upstream taught about a model: tokens reported per token estimated, and its window."""

    upstream: str
    model: str
    ratio: float = 1.0
    samples: int = 0
    window: int = 0  # tokens, 0 = not learnt
    window_until: str = ""  # ISO 8601; after it the window counts no longer


class PinEdit(msgspec.Struct, frozen=True):
    """A change of the pins that a person made by hand."""

    seq: int
    session: str
    action: Action
    pin: str  # id of the pin to close or retract, "" for add
    kind: str
    text: str
    at: str
    rule: str = "by hand"  # what proposed it otherwise, and which characters of which turn its words are
    turn: bytes = b""
    span: tuple[int, int] | None = None


class Reply(msgspec.Struct, frozen=True):
    """What an upstream keeps under an id: the first `length` messages of the request's path, then these items."""

    id: str
    length: int
    items: tuple[str, ...]  # digests of the answer's items
    insertions: tuple[str, ...] = ()  # ids of the insertions that stood in what the upstream got
    names: tuple[str, ...] = ()  # the upstream's own ids of the items, "" for one without


class Kept(msgspec.Struct, frozen=True):
    """A stored reply: the digests of the whole path, its answer included, and the insertions in it."""

    branch: str
    path: tuple[str, ...]
    insertions: tuple[str, ...]


class Batch(msgspec.Struct, frozen=True):
    """Rows that are committed together; every field may be left out."""

    tenant: str = ""
    namespace: str = ""
    at: str = ""  # ISO 8601, UTC; "" = the time of the commit
    request: str = ""  # id of the receipt that this batch belongs to; needed with `path`
    branch: str = ""  # whose path this is
    session: SessionRow | None = None
    lineage: tuple[Changes, ...] = ()  # what the lineage engine wants kept
    messages: tuple[tuple[Message, int], ...] = ()  # with tokens, 0 = not counted
    path: tuple[tuple[int, str], ...] = ()  # (position, digest) where the branch's path differs from before
    length: int | None = None  # messages in the branch's path from now on
    insertions: tuple[Insertion, ...] = ()
    receipt: Receipt | None = None
    calls: Callable[[], Iterable[ToolCall]] | None = None  # of the receipt; the writer asks, as it reads whole results
    sent: Sent | None = None  # the body that the receipt is of
    answer: Answer | None = None  # what the model replied to `request`
    reply: Reply | None = None  # under what id the upstream keeps it
    facts: tuple[FactChange, ...] = ()
    learnt: Learnt | None = None
    quarantine: tuple[tuple[str, str], ...] = ()  # (branch, plan)


class Loaded(msgspec.Struct, frozen=True):
    """All that the store knows of one branch, unsealed."""

    stored: StoredBranch
    path: tuple[str, ...]  # digests of the messages in the newest path
    insertions: tuple[Insertion, ...]  # oldest first


def now() -> str:
    """Gives the time as ISO 8601 in UTC, with milliseconds."""
    seconds, thousandths = divmod(time.time_ns() // 1_000_000, 1000)
    return f"{_second(seconds)}.{thousandths:03d}Z"


@lru_cache(maxsize=8)
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
