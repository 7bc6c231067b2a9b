"""ULIDs: ids that sort by the time at which they were made."""

from __future__ import annotations

import os
import threading
import time

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS = tuple(a + b for a in _ALPHABET for b in _ALPHABET)
_lock = threading.Lock()
_last = 0


def new_ulid() -> str:
    """Gives a ULID (26 characters) that is greater than every one this process gave before."""
    global _last  # noqa: PLW0603 — the order within one millisecond needs the last value
    fresh = time.time_ns() // 1_000_000 << 80 | int.from_bytes(os.urandom(10))
    with _lock:
        if fresh >> 80 <= _last >> 80:
            fresh = _last + 1 + int.from_bytes(os.urandom(4))
        _last = fresh
    return "".join(_PAIRS[fresh >> shift & 1023] for shift in range(120, -1, -10))
