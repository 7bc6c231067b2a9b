"""The store that only reads."""

from __future__ import annotations

import pytest

from proxy.errors import StoreError
from proxy.store.aside import Aside


def test_a_job_that_reads_runs_and_one_that_writes_is_refused() -> None:
    store = Aside.empty()
    assert store.run(lambda db: db.execute("SELECT count(*) FROM facts").fetchone()[0]).result() == 0
    with pytest.raises(StoreError, match="readonly"):
        store.run(lambda db: db.execute("DELETE FROM facts")).result()
    store.close()
