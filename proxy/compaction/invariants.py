"""What must hold in every body that we forward, each as an object that says where one may cut and what is wrong.

A cut is legal where every invariant allows it. A rewritten body is valid when it has no fault that the client's own
body didn't have: what the client sent wrong stays its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
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
    """For upstreams whose template wants one system message, first, and never two turns of one of `roles` in a row."""

    name = "strict_roles"

    def __init__(self, roles: tuple[str, ...] = ("user", "assistant")) -> None:
        self._roles = roles

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
            if role == before and role in self._roles:
                found.add(f"two {role} messages in a row")
            before = role
        return frozenset(found)


class AnsweredCalls:
    """Messages: the calls of an assistant are answered at the start of the very next user message, all in that one.

    Calls that the provider's own tools answer have their results in the assistant's message itself.
    """

    name = "answered_calls"

    def forbidden(self, messages: Sequence[Message]) -> frozenset[int]:
        """No cut lies before a user message with results: its calls would stay on the other side."""
        return frozenset(
            index for index, message in enumerate(messages) if message.role != "assistant" and _results(message)
        )

    def faults(self, messages: Sequence[Message]) -> frozenset[str]:
        """Results without a call, calls without a result, and results that other blocks stand in front of."""
        found: set[str] = set()
        open_calls: frozenset[str] = frozenset()
        for message in messages:
            inside = frozenset(_results(message))
            if message.role == "assistant":
                found.update(f"call {call!r} without its result" for call in open_calls)
                open_calls = frozenset(_calls(message)) - inside
                continue
            found.update(f"result {call!r} without its call" for call in inside - open_calls)
            found.update(f"call {call!r} without its result" for call in open_calls - inside)
            found.update(f"result {call!r} behind other blocks" for call in _late_results(message))
            open_calls = frozenset()
        return frozenset(found)


class AlternatingTurns:
    """Messages: the first message is the user's, and user and assistant take turns."""

    name = "alternating_turns"

    def forbidden(self, messages: Sequence[Message]) -> frozenset[int]:
        """A cut lies before an assistant message only: the block becomes part of the user message before it."""
        return frozenset(index for index, message in enumerate(messages) if message.role != "assistant")

    def faults(self, messages: Sequence[Message]) -> frozenset[str]:
        """A body that another role opens, and two turns of one role in a row, behind a provider's block or without."""
        own = messages[1:] if messages and condensed(messages[0]) else messages
        roles = [message.role for message in own if message.role not in SYSTEM_ROLES]
        found = {f"two {role} messages in a row" for role, after in pairwise(roles) if role == after}
        if roles and roles[0] != "user" and own is messages:
            found.add(f"the first message has the role {roles[0]}")
        return frozenset(found)


def condensed(message: Message) -> bool:
    """Whether a message is nothing but what the provider made of the turns before."""
    return message.role == "assistant" and [part.name for part in message.parts] == ["compaction"]


CHAT: tuple[Invariant, ...] = (PairedCalls(), OpenRun())
STRICT_CHAT: tuple[Invariant, ...] = (*CHAT, StrictRoles())
MESSAGES: tuple[Invariant, ...] = (AnsweredCalls(), AlternatingTurns(), OpenRun())


def forbidden(invariants: Sequence[Invariant], messages: Sequence[Message]) -> frozenset[int]:
    """Gives the message indexes before which at least one invariant forbids a cut."""
    return frozenset().union(*(invariant.forbidden(messages) for invariant in invariants))


def validate(invariants: Sequence[Invariant], ours: Sequence[Message], clients: Sequence[Message]) -> None:
    """Raises InvalidRewrite when our body has a fault that the client's own body doesn't have."""
    for invariant in invariants:
        found = invariant.faults(ours)
        new = found - invariant.faults(clients) if found else found
        if new:
            raise InvalidRewrite(f"{invariant.name}: {', '.join(sorted(new)[:5])}")


def _results(message: Message) -> list[str]:
    return [part.call_id for part in message.parts if part.kind == "result" and part.call_id]


def _calls(message: Message) -> list[str]:
    return [part.call_id for part in message.parts if part.kind == "call" and part.call_id]


def _late_results(message: Message) -> list[str]:
    """Results behind a text; pictures and files inside a result are parts behind it, and no blocks of their own."""
    texts = [place for place, part in enumerate(message.parts) if part.kind == "text"]
    return [part.call_id for part in message.parts[texts[0] :] if part.kind == "result"] if texts else []
