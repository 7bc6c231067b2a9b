"""Reads a body that carries a list of messages; what an earlier body began with is not read again."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from proxy.dialects.jsonbytes import array_items, object_fields, value_span
from proxy.dialects.memory import Memory
from proxy.errors import UnreadableBody
from proxy.transcript import Message

_PREFIXES = 16  # bodies whose beginning is remembered
_PREFIX_BYTES = 16 << 20  # of all of them together
_LEAST = 1 << 10  # bytes from which remembering pays
_STAND_IN = b'{"list":[null'  # takes the place of what is known already


class Body(msgspec.Struct, frozen=True):
    """A body taken apart: `head`, the raw messages with commas between them, `tail`."""

    fields: dict[str, bytes]  # raw values of all keys but the list's
    messages: tuple[Message, ...]
    head: bytes
    tail: bytes


class _Prefix(msgspec.Struct, frozen=True):
    """The beginning of an earlier body, up to the end of its last message."""

    data: bytes
    head: bytes
    fields: dict[str, bytes]  # of the keys before the list
    messages: tuple[Message, ...]


class BodyReader:
    """Reads bodies whose list stands under one key; equal bytes of a message give the same object."""

    def __init__(self, key: str, read: Callable[[bytes], Message]) -> None:
        self._key = key
        self._read = read
        self._memory = Memory()
        self._prefixes: list[_Prefix] = []

    def message(self, raw: bytes) -> Message:
        """Gives the message of these bytes. Raises UnreadableBody."""
        return self._memory.message(raw, self._read)

    def body(self, data: bytes) -> Body:
        """Takes a body apart. Raises UnreadableBody."""
        for prefix in reversed(self._prefixes):
            if data.startswith(prefix.data):
                found = self._grown(prefix, data)
                if found is not None:
                    self._prefixes.remove(prefix)
                    self._remember(data, found, prefix.fields)
                    return found
        fields = object_fields(data)
        raw = fields.get(self._key, b"")
        if not raw.startswith(b"["):
            raise UnreadableBody(f"the body has no list under {self._key!r}")
        start, end = value_span(data, fields, self._key)
        del fields[self._key]
        found = Body(fields, tuple(map(self.message, array_items(raw))), data[: start + 1], data[end - 1 :])
        before = _keys_before(data[: start + 1], self._key)
        self._remember(data, found, {name: fields[name] for name in before})
        return found

    def _grown(self, prefix: _Prefix, data: bytes) -> Body | None:
        """Reads only what is behind a known beginning; None where the whole has to be looked at."""
        rest = _STAND_IN + data[len(prefix.data) :]
        try:
            fields = object_fields(rest)
            start, end = value_span(rest, fields, "list")
            new = array_items(fields.pop("list"))[1:]
        except UnreadableBody:
            return None
        if self._key in fields or fields.keys() & prefix.fields.keys() or rest[start : start + 1] != b"[":
            return None
        messages = prefix.messages + tuple(map(self.message, new))
        return Body({**prefix.fields, **fields}, messages, prefix.head, rest[end - 1 :])

    def _remember(self, data: bytes, body: Body, before: dict[str, bytes]) -> None:
        known = data[: len(data) - len(body.tail)].rstrip()
        if len(known) < _LEAST or not body.messages:
            return
        self._prefixes.append(_Prefix(known, body.head, before, body.messages))
        while len(self._prefixes) > _PREFIXES or sum(len(one.data) for one in self._prefixes) > _PREFIX_BYTES:
            del self._prefixes[0]


def _keys_before(head: bytes, key: str) -> tuple[str, ...]:
    """Gives the keys that stand before the list; `head` ends with the list's opening bracket."""
    names = list(object_fields(head + b"]}"))
    return tuple(name for name in names if name != key)
