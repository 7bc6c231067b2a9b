"""What happens to the store when somebody stops waiting for it."""

from __future__ import annotations

import asyncio

from proxy.redaction import Sealer
from proxy.store.rows import Batch
from proxy.store.sqlite import Store


async def test_a_waiter_that_leaves_does_not_stop_the_writer(tmp_path):
    store = Store.open(tmp_path, Sealer(None))
    try:
        for _ in range(20):
            waiting = asyncio.wrap_future(store.submit(Batch()))
            waiting.cancel()
        later = asyncio.wrap_future(store.submit(Batch()))
        await asyncio.wait_for(later, 10)
        assert later.exception() is None
    finally:
        store.close()
