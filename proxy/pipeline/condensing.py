"""Asks the provider for its own block of the oldest turns, in the background, with the request's own credentials."""

from __future__ import annotations

import asyncio

import msgspec
from msgspec.structs import replace

from proxy.compaction.condensed import Order, fits, order
from proxy.compaction.draft import Draft, Tools
from proxy.compaction.plan import draft_of
from proxy.compaction.thinking import CONDENSING, Condensed, asking_to_condense, block_in, with_beta
from proxy.dialects.base import Dialect
from proxy.errors import GoalkeeperError
from proxy.exchange import Call, Copy
from proxy.pipeline.case import BranchState, Case
from proxy.pipeline.passage import Passage
from proxy.pipeline.routing import Routing
from proxy.pipeline.summarizing import PASSED_ON
from proxy.settings.model import Reasoning
from proxy.telemetry import Counters

INTERNAL = ("x-goalkeeper-internal", "compaction")
_AT = 0.8  # of the trigger: from here on a block is asked for
_TRIES = 3  # times that a branch asks without success
_OK = 200
_FOR_GOOD = (400, 403, 404, 405, 422)  # the upstream doesn't know this, or not for this model


class Condenser:
    """Gets blocks ready before a cut is due."""

    def __init__(self, settings: Reasoning, dialect: Dialect, routing: Routing, counters: Counters) -> None:
        self._settings = settings
        self._dialect = dialect
        self._routing = routing
        self._counters = counters
        self._unknown: set[tuple[str, str]] = set()  # route and model that don't know it
        self._tasks: set[asyncio.Task[None]] = set()

    def prepare(self, passage: Passage, tools: Tools) -> None:
        """Starts asking when a cut is near and the branch has no block that fits."""
        case, policy = passage.case, passage.policy
        if self._settings.compaction == "off" or case is None or case.track is None or policy is None:
            return
        near = passage.plan is not None and passage.plan.tokens_out > _AT * policy.budget.trigger > 0
        state = case.track.state
        if not near or policy.mode != "full" or state.condensing or state.condense_failures >= _TRIES:
            return
        draft = draft_of(case.track.view, case.branch, state.memory, policy, tools)
        self._start(passage.call, case, state, draft)

    def _start(self, call: Call, case: Case, state: BranchState, draft: Draft) -> None:
        waiting = state.memory.block
        if waiting is not None and fits(waiting, draft):
            return
        asked = None if self._place(case, call) in self._unknown else order(draft)
        state.memory = replace(state.memory, block=None)
        if asked is None:
            return
        state.condensing = True
        task = asyncio.create_task(self._asked(call, case, state, asked))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _asked(self, call: Call, case: Case, state: BranchState, asked: Order) -> None:
        try:
            block = await self._block(call, case, asked)
        except (GoalkeeperError, TimeoutError, msgspec.MsgspecError, UnicodeDecodeError):
            block = None
        finally:
            state.condensing = False
        self._counters.add("condensed_total", "failed" if block is None else "ready")
        if block is None:
            state.condense_failures += 1
        else:
            state.memory = replace(state.memory, block=block)

    async def _block(self, call: Call, case: Case, asked: Order) -> Condensed | None:
        whole = self._dialect.render(case.transcript, asked.messages)
        body = asking_to_condense(whole, self._settings.max_tokens)
        kept = [(name, value) for name, value in call.headers if name.lower() in (*PASSED_ON, "anthropic-beta")]
        headers = [*with_beta(kept, CONDENSING), ("Content-Type", "application/json"), ("Accept", "application/json")]
        async with asyncio.timeout(self._settings.timeout_seconds):
            sender = self._routing.sender(case.transcript.model, self._dialect.path)
            reply = await sender.send("POST", call.path, headers, body, identity=True, own=(INTERNAL,))
            try:
                copy = Copy()
                copy.add(await reply.read())
            finally:
                reply.close()
        if reply.status in _FOR_GOOD:
            self._unknown.add(self._place(case, call))
        if reply.status != _OK:
            return None
        raw, text, tokens = block_in(copy.text(reply.header("content-encoding")))
        if not raw:
            return None
        return Condensed(raw, text, asked.end, asked.anchor, asked.within, case.transcript.model, tokens)

    def _place(self, case: Case, call: Call) -> tuple[str, str]:
        return self._routing.place(case.transcript.model, call.path), case.transcript.model
