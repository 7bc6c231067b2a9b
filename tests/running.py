"""The parts of a real proxy on one data folder, as the pipelines of the tests are built from them."""

from __future__ import annotations

from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any, Self

from proxy.assembly import Parts
from proxy.redaction import Sealer
from proxy.settings import Settings
from proxy.store.queries import receipt
from proxy.store.rows import Batch
from proxy.store.sqlite import Store
from proxy.telemetry import Counters, Log
from proxy.tokens import Counter
from proxy.upstream import Upstream
from tests.builders import PROFILES, RULES

KEY = b"k" * 32


@dataclass(frozen=True, slots=True)
class Running:
    """The parts, and what was logged so far."""

    parts: Parts
    log: StringIO

    @classmethod
    def start(cls, folder: Path, url: str, counter: Counter, **settings: Any) -> Self:
        """Opens the store in the folder, in front of the upstream at this URL; needs a running event loop."""
        seal, log = Sealer(KEY), StringIO()
        read = Settings(upstream={"url": url}, data=folder, **settings)
        upstream, store = Upstream(read.upstream.url), Store.open(folder, seal)
        return cls(Parts(read, upstream, store, seal, KEY, RULES, PROFILES, counter, Counters(), Log(log)), log)

    def newest_receipt(self) -> dict[str, Any]:
        """Gives the newest receipt, once all that was submitted before it is committed."""
        self.parts.store.submit(Batch()).result()
        return receipt(self.parts.store._db, "last")

    async def close(self) -> None:
        """Ends the proxy; what it was given is on disk then."""
        await self.parts.upstream.close()
        self.parts.store.close()
        self.parts.log.close()
