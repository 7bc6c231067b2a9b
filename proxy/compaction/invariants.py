"""What must hold in every body that we forward, each as an object that says where one may cut and what is wrong.

A cut is legal where every invariant allows it. A rewritten body is valid when it has no fault that the client's own body
didn't have: what the client sent wrong stays its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from proxy.errors import InvalidRewrite
from proxy.transcript import Message

SYSTEM_ROLES = ("system", "developer")


class Invariant(Protocol):
    """One rule of a dialect."""

    name: str

    def forbidden(self, messages: Sequence[Message]) -> frozenset[int]:
        """Gives the message indexes before which no cut may lie."""

    def faults(self, messages: Sequence[Message]) -> frozenset[str]:
        """Gives what is wrong in a body, one text for each fault."""


class PairedCalls:
    """Each call is answered directly behind its message, once; no result stands without its call."""

    name = "paired_calls"

    def forbidden(self, messages: Sequence[Message]) -> frozenset[int]:
        """No cut lies before a result: its call would stay on the other side."""
        return frozenset(index for index, message in enumerate(messages) if _results(message))

    def faults(self, messages: Sequence[Message]) -> frozenset[str]:
        """Results without a call, calls without a result, twice answered calls."""
        found: set[str] = set()
        open_calls: list[str] = []
        for message in messages:
            results = _results(message)
            for call in results:
                if call in open_calls:
                    open_calls.remove(call)
                else:
                    found.add(f"result {call!r} without its call")
            if not results:
                found.update(f"call {call!r} without its result" for call in open_calls)
                open_calls = [part.call_id for part in message.parts if part.kind == "call" and part.call_id]
        return frozenset(found)


class OpenRun:
    """What the model works on right now stays whole: the newest human turn, and the newest calls with their results."""

    name = "open_run"

    def forbidden(self, messages: Sequence[Message]) -> frozenset[int]:
        """No cut lies behind the start of the newest group."""
        start = len(messages) - 1
        while start > 0 and (_results(messages[start]) or messages[start].role in SYSTEM_ROLES):
            start -= 1
        return frozenset(range(start + 1, len(messages) + 1))

    def faults(self, messages: Sequence[Message]) -> frozenset[str]:
        """A body needs something to answer."""
        alive = any(message.role not in SYSTEM_ROLES for message in messages)
        return frozenset() if alive else frozenset({"no message besides the system text"})


class StrictRoles:
    """For upstreams whose template wants one system message, first, and strict alternation of user and assistant."""

    name = "strict_roles"

    def forbidden(self, messages: Sequence[Message]) -> frozenset[int]:
        """A cut lies before an assistant message only: the block becomes part of the user message before it."""
        return frozenset(index for index, message in enumerate(messages) if message.role != "assistant")

    def faults(self, messages: Sequence[Message]) -> frozenset[str]:
        """System text that isn't first, and two turns of one role in a row."""
        found: set[str] = set()
        before = ""
        for index, message in enumerate(messages):
            role = message.role
            if role in SYSTEM_ROLES and index:
                found.add(f"{role} message that isn't the first")
            if role == before and role in ("user", "assistant"):
                found.add(f"two {role} messages in a row")
            before = role
        return frozenset(found)


CHAT: tuple[Invariant, ...] = (PairedCalls(), OpenRun())
STRICT_CHAT: tuple[Invariant, ...] = (*CHAT, StrictRoles())


def forbidden(invariants: Sequence[Invariant], messages: Sequence[Message]) -> frozenset[int]:
    """Gives the message indexes before which at least one invariant forbids a cut."""
    return frozenset().union(*(invariant.forbidden(messages) for invariant in invariants))


def validate(invariants: Sequence[Invariant], ours: Sequence[Message], clients: Sequence[Message]) -> None:
    """Raises InvalidRewrite when our body has a fault that the client's own body doesn't have."""
    for invariant in invariants:
        new = invariant.faults(ours) - invariant.faults(clients)
        if new:
            raise InvalidRewrite(f"{invariant.name}: {', '.join(sorted(new)[:5])}")


def _results(message: Message) -> list[str]:
    return [part.call_id for part in message.parts if part.kind == "result" and part.call_id]
