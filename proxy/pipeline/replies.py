"""What an upstream keeps under ids of its own, so that a request that names one is seen with its whole history."""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Callable, Iterable

import msgspec
from msgspec.structs import replace

from proxy.pipeline.case import Scope
from proxy.store.sqlite import Store
from proxy.transcript import Message, Transcript

_REMEMBERED = 512  # replies in memory; the store has them all
_ITEMS = 8_192  # items in memory
_REFERENCE = "item_reference"


class Held(msgspec.Struct, frozen=True):
    """A history that the upstream holds: what the client sent and got, and our insertions in what the upstream got."""

    messages: tuple[Message, ...]
    insertions: tuple[str, ...] = ()


class Replies:
    """Finds histories by the ids under which an upstream keeps them."""

    def __init__(self, store: Store, read: Callable[[bytes], Message]) -> None:
        self._store = store
        self._read = read
        self._held: OrderedDict[tuple[Scope, str], Held] = OrderedDict()
        self._items: OrderedDict[tuple[str, str], Message] = OrderedDict()  # by tenant and id

    def keep(self, scope: Scope, name: str, held: Held, items: Iterable[Message] = ()) -> None:
        """Remembers a history, and its newest items by themselves, until the store has them and a while after that."""
        self._held[scope, name] = held
        if len(self._held) > _REMEMBERED:
            self._held.popitem(last=False)
        self._items.update(((scope.tenant, own), item) for item in items if (own := id_of(item)))
        while len(self._items) > _ITEMS:
            self._items.popitem(last=False)

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

    def resolved(self, scope: Scope, transcript: Transcript) -> tuple[Transcript, tuple[str, ...]]:
        """Puts known items where references to them stand; gives the ids, too, that only the upstream knows."""
        asked = [own for message in transcript.messages if (own := referred(message))]
        if not asked:
            return transcript, ()
        known = self._known(scope.tenant, asked)
        messages = tuple(known.get(referred(message), message) for message in transcript.messages)
        return replace(transcript, messages=messages), tuple(own for own in asked if own not in known)

    def _known(self, tenant: str, names: Iterable[str]) -> dict[str, Message]:
        found = {own: item for own in names if (item := self._items.get((tenant, own))) is not None}
        rest = self._store.items(tenant, {own for own in names if own not in found})
        raw = self._store.load_messages(tenant, set(rest.values())) if rest else {}
        for own, digest in rest.items():
            if digest in raw:
                found[own] = self._items[tenant, own] = self._read(raw[digest])
        return found


class _Named(msgspec.Struct):
    id: str = ""


def id_of(item: Message) -> str:
    """Gives the id under which an upstream keeps an item, "" without one."""
    with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError):
        return msgspec.json.decode(item.raw, type=_Named).id
    return ""


def referred(message: Message) -> str:
    """Gives the id that a reference names, "" for any other item."""
    part = message.parts[0] if len(message.parts) == 1 else None
    return part.call_id if part is not None and part.kind == "opaque" and part.name == _REFERENCE else ""
