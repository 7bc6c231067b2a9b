"""What a request brings, as rows for the store, and when they are sent there."""

from __future__ import annotations

import asyncio
from typing import Any

from proxy.facts import Source
from proxy.pipeline.case import Case
from proxy.store.rows import Batch, SessionRow
from proxy.store.sqlite import Store

_HELD_SECONDS = 0.02  # receipts and answers wait so long for company on their way to the store


class Recorder:
    """Holds rows that nobody waits for until there are more of them, in the order in which they came."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._flushing: asyncio.TimerHandle | None = None

    def later(self, batch: Batch) -> None:
        """Queues a batch within twenty milliseconds."""
        self._store.later(batch)
        if self._flushing is None:
            self._flushing = asyncio.get_running_loop().call_later(_HELD_SECONDS, self._flush)

    def _flush(self) -> None:
        self._flushing = None
        self._store.flush()


def source_of(case: Case) -> Source:
    """Gives where a request's facts come from."""
    return Source(
        session=case.link.session,
        branch=case.link.line,
        client=case.profile.name,
        model=case.transcript.model,
        project=case.project,
        cwd=case.place.cwd,
        git_branch=case.place.git_branch,
        git_commit=case.place.git_commit,
    )


def session_of(case: Case) -> SessionRow | None:
    """Gives the session as this request shows it, None for one that belongs to none."""
    if not case.link.session:
        return None
    return SessionRow(case.link.session, case.profile.name, case.transcript.model, case.project)


def batch_of(case: Case, **rows: Any) -> Batch:  # noqa: ANN401  the fields of Batch
    """Gives a batch of rows that belong to a request."""
    scope = case.scope
    return Batch(scope.tenant, scope.namespace, request=case.receipt, branch=case.branch, **rows)
