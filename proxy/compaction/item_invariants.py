"""What must hold in a body of Responses, where an answer is several items and the server may have compacted history.

Facts about the wire: outputs are paired with calls by `call_id` and need not be neighbours; reasoning goes back
directly before the item it led to, both or neither; what a server compacted is used as it came.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from proxy.compaction.invariants import Invariant, OpenRun, StrictRoles
from proxy.transcript import Message, Part


class PairedItems:
    """Each call is answered somewhere behind it, once; no output stands without its call (items of Responses)."""

    name = "paired_items"

    def forbidden(self, messages: Sequence[Message]) -> frozenset[int]:
        """No cut lies between a call and its output, nor before an output whose call only the server knows."""
        found: set[int] = set()
        calls: dict[str, int] = {}
        for index, message in enumerate(messages):
            calls.update((part.call_id, index) for part in message.parts if part.kind == "call" and part.call_id)
            for call in _results(message):
                start = calls[call] if call in calls else _referred(messages, index)
                found.update(range(start + 1, index + 1))
        return frozenset(found)

    def faults(self, messages: Sequence[Message]) -> frozenset[str]:
        """Outputs without a call, calls without an output."""
        found: set[str] = set()
        waiting: set[str] = set()
        for message in messages:
            waiting.update(part.call_id for part in message.parts if part.kind == "call" and part.call_id)
            found.update(f"output {call!r} without its call" for call in _results(message) if call not in waiting)
            waiting.difference_update(_results(message))
        return frozenset(found | {f"call {call!r} without its output" for call in waiting})


class WholeAnswers(OpenRun):
    """Each answer stays whole, its words with the calls that they announce, and what is worked on right now too.

    Calls that the server ran itself may be apart: one answer can hold many.
    """

    name = "whole_answers"

    def forbidden(self, messages: Sequence[Message]) -> frozenset[int]:
        """No cut lies inside an answer, nor behind the start of the newest one."""
        start = min(super().forbidden(messages), default=1) - 1
        while start > 0 and _assistant(messages[start]) and _assistant(messages[start - 1]):
            start -= 1
        pairs = enumerate(pairwise(messages), 1)
        inside = {at for at, (one, other) in pairs if _assistant(one) and _assistant(other) and not _served(one)}
        return frozenset(inside.union(range(start + 1, len(messages) + 1)))


class ReasoningWithItem:
    """Reasoning stays directly before what it led to, and what it led to never stands without it."""

    name = "reasoning_with_item"

    def forbidden(self, messages: Sequence[Message]) -> frozenset[int]:
        """No cut lies in an answer behind its first reasoning."""
        return frozenset(index for index in self._led(messages) if not reasoning(messages[index]))

    def faults(self, messages: Sequence[Message]) -> frozenset[str]:
        """Reasoning that nothing follows, and items that no reasoning leads (as all are whose answer had none)."""
        led = self._led(messages)
        found: set[str] = set()
        for index, message in enumerate(messages):
            if _assistant(message) and index not in led:
                found.add(f"item {message.digest} without its reasoning")
            if reasoning(message) and not (index + 1 < len(messages) and _assistant(messages[index + 1])):
                found.add(f"reasoning {message.digest} without its item")
        return frozenset(found)

    @staticmethod
    def _led(messages: Sequence[Message]) -> frozenset[int]:
        """The indexes of the items that stand in one answer with reasoning before them, and of reasoning itself."""
        found: set[int] = set()
        leading = False
        for index, message in enumerate(messages):
            leading = _assistant(message) and (leading or reasoning(message))
            if leading:
                found.add(index)
        return frozenset(found)


class SealedHistory:
    """Up to the server's newest compaction item nothing leaves and nothing more comes in."""

    name = "sealed_history"

    def forbidden(self, messages: Sequence[Message]) -> frozenset[int]:
        """No cut lies before the newest compaction item, or at it."""
        return frozenset(range(sealed_until(messages)))

    def faults(self, messages: Sequence[Message]) -> frozenset[str]:
        """A body whose compaction item is gone; a block from before the server compacted stays in front of it."""
        return frozenset() if sealed_until(messages) else frozenset({"no compaction item"})


class KnownItems:
    """What only the upstream can read stays: it can't be archived, and it may be a person's words."""

    name = "known_items"

    def forbidden(self, messages: Sequence[Message]) -> frozenset[int]:
        """No cut lies behind a reference whose item isn't known here."""
        places = [place for place, message in enumerate(messages) if _refers(message)]
        return frozenset(range(places[0] + 1, len(messages) + 1)) if places else frozenset()

    def faults(self, messages: Sequence[Message]) -> frozenset[str]:
        """None: a reference is the client's own affair."""
        del messages
        return frozenset()


def sealed_until(messages: Sequence[Message]) -> int:
    """Gives the index behind the newest compaction item of the server, 0 without one."""
    places = range(len(messages), 0, -1)
    return next((place for place in places if any(_seals(part) for part in messages[place - 1].parts)), 0)


def _assistant(message: Message) -> bool:
    return message.role == "assistant"


def reasoning(message: Message) -> bool:
    """Whether the message is nothing but reasoning, which belongs to what follows it."""
    return _assistant(message) and bool(message.parts) and all(part.kind == "thinking" for part in message.parts)


def _served(message: Message) -> bool:
    """Whether it is a call that the server ran itself."""
    return any(part.kind == "call" and not part.call_id for part in message.parts)


def _seals(part: Part) -> bool:
    return part.kind == "opaque" and part.name == "compaction"


def _refers(message: Message) -> bool:
    return any(part.kind == "opaque" and part.name == "item_reference" for part in message.parts)


def _referred(messages: Sequence[Message], index: int) -> int:
    """The start of the answer that an output belongs to when its call is hidden behind a reference."""
    start = index
    while start > 0 and messages[start - 1].role in ("assistant", "tool"):
        start -= 1
    return start


def _results(message: Message) -> list[str]:
    return [part.call_id for part in message.parts if part.kind == "result" and part.call_id]


RESPONSES: tuple[Invariant, ...] = (PairedItems(), WholeAnswers(), ReasoningWithItem(), SealedHistory(), KnownItems())
STRICT_RESPONSES: tuple[Invariant, ...] = (*RESPONSES, StrictRoles(("user",)))
