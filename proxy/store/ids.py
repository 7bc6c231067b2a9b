"""ULIDs: ids that sort by the time at which they were made."""

from __future__ import annotations

import random
import threading
import time

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS = tuple(a + b for a in _ALPHABET for b in _ALPHABET)
_lock = threading.Lock()
_last = 0
_random = random.Random()  # noqa: S311 — ids are no secrets; seeded by the system, and drawn without a system call


def time_of(ulid: str) -> float:
    """Gives when a ULID was made, in seconds since the epoch; 0 for a text that is none."""
    if len(ulid) != 26 or any(sign not in _ALPHABET for sign in ulid[:10]):
        return 0.0
    number = 0
    for sign in ulid[:10]:
        number = number << 5 | _ALPHABET.index(sign)
    return number / 1000


def new_ulid() -> str:
    """Gives a ULID (26 characters) that is greater than every one this process gave before."""
    global _last  # noqa: PLW0603 — the order within one millisecond needs the last value
    fresh = time.time_ns() // 1_000_000 << 80 | _random.getrandbits(80)
    with _lock:
        if fresh >> 80 <= _last >> 80:
            fresh = _last + 1 + _random.getrandbits(32)
        _last = fresh
    return "".join([_PAIRS[fresh >> shift & 1023] for shift in range(120, -1, -10)])
