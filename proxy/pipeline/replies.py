"""What an upstream keeps under ids of its own, so that a request that names one is seen with its whole history."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from proxy.pipeline.case import Scope
from proxy.store.sqlite import Store
from proxy.transcript import Message

_REMEMBERED = 512  # replies in memory; the store has them all


@dataclass(frozen=True, slots=True)
class Held:
    """A history that the upstream holds: what the client sent and got, and our insertions in what the upstream got."""

    messages: tuple[Message, ...]
    insertions: tuple[str, ...] = ()


class Replies:
    """Finds histories by the ids under which an upstream keeps them."""

    def __init__(self, store: Store, read: Callable[[bytes], Message]) -> None:
        self._store = store
        self._read = read
        self._held: OrderedDict[tuple[Scope, str], Held] = OrderedDict()

    def keep(self, scope: Scope, name: str, held: Held) -> None:
        """Remembers a history until the store has it, and for a while after that."""
        self._held[scope, name] = held
        if len(self._held) > _REMEMBERED:
            self._held.popitem(last=False)

    def clear(self) -> None:
        """Lets the store be asked for everything again."""
        self._held.clear()

    def find(self, scope: Scope, name: str) -> Held | None:
        """Gives the history behind an id, None when it isn't known, or a part of it is forgotten."""
        known = self._held.get((scope, name))
        if known is not None:
            return known
        kept = self._store.reply(scope.tenant, scope.namespace, name)
        if kept is None:
            return None
        raw = self._store.load_messages(scope.tenant, set(kept.path))
        if any(digest not in raw for digest in kept.path):
            return None
        return Held(tuple(self._read(raw[digest]) for digest in kept.path), kept.insertions)
