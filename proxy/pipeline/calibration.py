"""What upstreams teach about their models: their own token counts, and their windows."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache

from msgspec.structs import replace

from proxy.store.rows import Batch, Learnt
from proxy.store.sqlite import Store
from proxy.tokens import Calibration, table_window

_SAVED_EACH = 10  # samples between two writes

Known = dict[tuple[str, str], Calibration]  # by upstream and model


class Calibrations:
    """Calibrations by model, each of its own upstream; kept in the store, so that they outlive a restart."""

    def __init__(self, store: Store, upstream: Callable[[str], str], known: Known | None = None) -> None:
        """Takes the store, what names a model's upstream, and what those who share the upstreams know already."""
        self._store = store
        self._upstream = cache(upstream)
        self._known = {} if known is None else known

    def of(self, model: str) -> Calibration:
        """Gives what is known about a model."""
        place = self._upstream(model), model
        if place not in self._known:
            row = self._store.learnt(*place)
            until = datetime.fromisoformat(row.window_until).timestamp() if row and row.window_until else 0.0
            self._known[place] = Calibration(row.ratio, row.samples, row.window, until) if row else Calibration()
        return self._known[place]

    def ratio(self, model: str) -> float:
        """Upstream's tokens for one of our estimate, 0.5 to 2."""
        return self.of(model).ratio

    def window(self, model: str, configured: int | None) -> int:
        """Gives a window in tokens: the learnt one, never above the configured one, else the table's; 0 = unknown."""
        learnt = self.of(model).known_window(time.time())
        listed = configured or table_window(model)
        return min(learnt, listed) if learnt and listed else learnt or listed

    def reported(self, model: str, estimate: int, prompt_tokens: int) -> bool:
        """Learns from one answer; False when the report is too far off to be learnt."""
        old = self.of(model)
        new = old.reported(estimate, prompt_tokens)
        if new is None:
            return False
        self._known[self._upstream(model), model] = new
        if new.samples <= 1 or new.samples % _SAVED_EACH == 0:
            self._save(model, new)
        return True

    def overflowed(self, model: str, window: int) -> None:
        """Learns a window (tokens) that an overflow error told; 0 teaches nothing."""
        if window:
            new = replace(self.of(model).overflowed(window, time.time()))
            self._known[self._upstream(model), model] = new
            self._save(model, new)

    def _save(self, model: str, one: Calibration) -> None:
        until = datetime.fromtimestamp(one.window_until, UTC).isoformat() if one.window else ""
        row = Learnt(self._upstream(model), model, one.ratio, one.samples, one.window, until)
        self._store.submit(Batch(learnt=row))
