"""What a dialect has parsed already, and the plain values that all bodies have: strings and positive numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from proxy.errors import UnreadableBody
from proxy.transcript import Message

_MEMORY_BYTES = 48 << 20  # raw bytes of known messages in each of two generations


class Memory:
    """Remembers parsed messages, so that equal bytes give the same object; what wasn't seen for long is forgotten."""

    def __init__(self, limit: int = _MEMORY_BYTES) -> None:
        self._limit = limit
        self._young: dict[bytes, Message] = {}
        self._old: dict[bytes, Message] = {}
        self._bytes = 0

    def message(self, raw: bytes, read: Callable[[bytes], Message]) -> Message:
        """Gives the message of these bytes; `read` makes it when it isn't known."""
        known = self._young.get(raw)
        if known is None:
            known = self._old.get(raw) or read(raw)
            self._young[raw] = known
            self._bytes += len(raw)
            if self._bytes > self._limit:
                self._old, self._young, self._bytes = self._young, {}, 0
        return known


def string(raw: bytes | None) -> str:
    """Gives a raw value when it is a string, else ""."""
    value = msgspec.json.decode(raw) if raw else None
    return value if isinstance(value, str) else ""


def number(raw: bytes | None) -> int:
    """Gives a raw value when it is a positive whole number, else 0."""
    value = msgspec.json.decode(raw) if raw else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def message_object(raw: bytes) -> tuple[dict[str, Any], str]:
    """Gives a message as an object, and its role ("" when it has none). Raises UnreadableBody."""
    try:
        item = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnreadableBody(f"a message can't be read: {error}") from error
    if not isinstance(item, dict):
        raise UnreadableBody("a message is not an object")
    role = item.get("role")
    return item, role if isinstance(role, str) else ""
