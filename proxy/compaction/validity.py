"""Which invariants hold in which dialect; compaction knows dialects by name only."""

from __future__ import annotations

from proxy.compaction.invariants import CHAT, MESSAGES, STRICT_CHAT, Invariant
from proxy.compaction.item_invariants import RESPONSES, STRICT_RESPONSES

ALTERNATING = frozenset({"messages"})  # dialects in which user and assistant must take turns

ITEMISED = frozenset({"responses"})  # dialects in which an answer is several items, paired by id alone

_INVARIANTS = {
    "chat": (CHAT, STRICT_CHAT),
    "messages": (MESSAGES, MESSAGES),
    "responses": (RESPONSES, STRICT_RESPONSES),
}


def of_dialect(name: str, *, strict: bool) -> tuple[Invariant, ...]:
    """Gives what must hold in a forwarded body of this dialect, chat by default; strict: roles must alternate."""
    return _INVARIANTS.get(name, _INVARIANTS["chat"])[strict]
