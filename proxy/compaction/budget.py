"""How many tokens a forwarded body may have, and what share of them pins may take."""

from __future__ import annotations

from typing import Literal

import msgspec

Mode = Literal["observe", "restore", "full"]
UNKNOWN_PINS = 8_000  # tokens for pins when the window is unknown


class Budget(msgspec.Struct, frozen=True):
    """Limits of one request, in the upstream's tokens; 0 means unknown.

    `trigger`: the first body above it is compacted. `size`: what shares (target, keep_recent, pins) are taken of.
    """

    trigger: int
    size: int
    hard: int  # window less output reserve

    def pins(self, configured: int | None) -> int:
        """Tokens that pins and history may take."""
        return configured or (self.size // 4 if self.size else UNKNOWN_PINS)


def budget_of(*, asked: int, window: int, max_output: int, share: float, mode: Mode) -> Budget:
    """Works out the limits: a set budget is itself the trigger, never above the window less the output reserve.

    Without a set budget it is `share` of the window less the reserve; in mode `restore` only the window itself counts.
    """
    hard = max(window - max_output, window // 4) if window else 0
    if asked and mode == "full":
        size = min(asked, hard) if hard else asked
    elif mode == "restore":
        size = hard
    else:
        size = int(share * hard)
    return Budget(trigger=size, size=size, hard=hard)
