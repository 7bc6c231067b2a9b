"""Small builders of rows."""

from __future__ import annotations

import json
from dataclasses import dataclass

from proxy.compaction.receipt import Receipt
from proxy.dialects.chat import Chat
from proxy.facts import Fact, FactChange
from proxy.lineage.records import BranchRecord, BranchState, Changes, Hint, Mark
from proxy.store.ids import new_ulid
from proxy.store.rows import Batch, SessionRow, now
from proxy.transcript import Message

KEY = b"k" * 32
TENANT = "t1"


@dataclass(frozen=True, slots=True)
class Words:
    """A pin as facts see it."""

    id: str
    text: str
    kind: str = "correction"
    status: str = "active"
    turn: int = 3
    message: str = "d" * 32
    rule: str = "no_opening"
    scope: str = "session"
    span: tuple[int, int] | None = None
    superseded_by: str = ""
    fallen: str = ""
    asked: str = ""
    via: str = ""


@dataclass(frozen=True, slots=True)
class Stand:
    """A ledger as facts see it."""

    pins: tuple[Words, ...] = ()


def said(text: str, role: str = "user") -> Message:
    """A message of the chat dialect."""
    return Chat().message(json.dumps({"role": role, "content": text}, ensure_ascii=False).encode())


def asked(*messages: Message, session: str = "S1", branch: str = "B1", start: int = 0, **more: object) -> Batch:
    """What one request of a branch makes the store keep; `messages` stand at `start` and behind it."""
    receipt = Receipt(
        id=new_ulid(),
        at=now(),
        session=session,
        branch=branch,
        track=branch,
        dialect="chat",
        messages=start + len(messages),
    )
    values: dict[str, object] = {
        "tenant": TENANT,
        "request": receipt.id,
        "branch": branch,
        "session": SessionRow(session, "generic", "m1", "/srv/shop"),
        "lineage": (
            Changes(
                branch=BranchRecord(branch, session) if start == 0 else None,
                state=BranchState(branch, requested=start + len(messages)),
                marks=(Mark("emitted", b"m" * 16),),
                hints=(Hint(b"h" * 16, branch),),
            ),
        ),
        "messages": tuple((message, 7) for message in messages),
        "path": tuple((start + place, message.digest) for place, message in enumerate(messages)),
        "length": start + len(messages),
        "receipt": receipt,
    }
    return Batch(**(values | more))  # type: ignore[arg-type]


def stated(pin: str, text: str, status: str = "active", session: str = "S1", **more: object) -> FactChange:
    """A fact's new state."""
    values: dict[str, object] = {
        "pin": pin,
        "kind": "correction",
        "status": status,
        "scope": "session",
        "text": text,
        "quote": text,
        "turn": 3,
        "rule": "r",
        "project": "/srv/shop",
        "session": session,
        "branch": "B1",
        "observed_at": now(),
        "source": {"session": session},
    }
    return FactChange("new" if status == "active" else status, now(), Fact(**(values | more)))  # type: ignore[arg-type]
