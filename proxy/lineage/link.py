"""What lineage says about one request."""

from __future__ import annotations

from typing import Literal

import msgspec

from proxy.lineage.keys import Path
from proxy.lineage.records import Changes
from proxy.transcript import HumanTurn, Key

Relation = Literal[
    "new",
    "extends",
    "resend",
    "rewound",
    "edited",
    "forked",
    "compacted",
    "derived",
    "ambiguous",
    "subagent",
    "side",
    "summary",
]
Evidence = Literal["header", "client_id", "chain", "tail_overlap", "summary_text", "new"]


class Link(msgspec.Struct, frozen=True):
    """Where a request belongs, and which human words it stands on.

    The pins of a request come from `base` and `humans`, in this order.
    """

    session: str  # session id, "" when unattached
    branch: str | None  # branch id, None when unattached; each epoch has one of its own
    relation: Relation
    match: Evidence
    detail: str = ""  # the evidence in words, for the receipt
    candidates: tuple[str, ...] = ()  # ids of sessions it could also be
    base: tuple[HumanTurn, ...] = ()  # human words cut off earlier and not in this body
    humans: tuple[HumanTurn, ...] = ()  # human turns in the body, in order
    keys: tuple[Key, ...] = ()
    chain: tuple[bytes, ...] = ()
    numbers: tuple[int, ...] = ()  # turn number of each key
    epoch: int = 0
    summary_keys: tuple[int, ...] = ()  # indexes of the keys that are the client's summary
    parent_branch: str | None = None
    changes: Changes = msgspec.field(default_factory=Changes)
    line: str = ""  # what people see as one branch: the same through compactions
    side: str = ""
    path: Path | None = None
    sources: tuple[str, ...] = ()  # branch ids whose summary this may be
