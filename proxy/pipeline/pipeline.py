"""What happens to one model request, from the client's bytes to the model and back.

The only place that fails open: whatever goes wrong inside, the safest body goes out, and receipt, header and counter
say so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from proxy.pipeline.calibration import Calibrations
from proxy.compaction.budget import Budget, budget_of
from proxy.compaction.draft import Memory, Policy, Tools
from proxy.compaction.overflow import Overflow, overflow
from proxy.compaction.plan import Plan, make_plan
from proxy.compaction.repair import repaired
from proxy.compaction.thinking import drops, is_refusal
from proxy.compaction.validity import ALTERNATING
from proxy.pipeline.conversation import Case, Conversations
from proxy.dialects.base import Dialect
from proxy.errors import ClientGone, GoalkeeperError, InvalidRewrite, UnreadableBody, UpstreamBroken
from proxy.exchange import Call, Copy, Sink, early_reply, relay
from proxy.pipeline.journal import Journal
from proxy.pipeline.outgoing import body_of, headers_of
from proxy.pipeline.passage import Outcome, Passage
from proxy.settings import Settings
from proxy.store.ids import new_ulid
from proxy.pipeline.summarizing import Summarizer
from proxy.telemetry import Counters
from proxy.tokens import Counter
from proxy.transcript import Transcript
from proxy.upstream import Reply, Upstream

_RATE_OR_AUTH = (401, 402, 403, 407, 408, 425, 429)
_REFUSAL_BYTES = 1 << 20
_ROUGH_BYTES = 128 << 10  # a body up to this size doesn't wait for the vocabulary


class Pipeline:
    """Answers model requests of one dialect."""

    def __init__(
        self,
        *,
        settings: Settings,
        dialect: Dialect,
        conversations: Conversations,
        upstream: Upstream,
        calibrations: Calibrations,
        counter: Counter,
        counters: Counters,
        journal: Journal,
    ) -> None:
        self._settings = settings
        self._dialect = dialect
        self._conversations = conversations
        self._upstream = upstream
        self._calibrations = calibrations
        self._counter = counter
        self._counters = counters
        self._journal = journal
        self._tools = Tools(counter.text, dialect, dialect.message)
        self._summarizer = Summarizer(settings.summarizer, dialect, upstream, counter)
        self._loading: asyncio.Task[None] | None = None

    async def handle(self, call: Call, sink: Sink) -> None:
        """Answers one call. Raises GoalkeeperError when the client has to get an error of ours."""
        passage = await self._decided(call)
        copy = Copy()
        try:
            passage, reply = await self._accepted(passage, sink)
            await self._committed(passage)
            await relay(
                reply,
                sink,
                headers=self._journal.headers(passage),
                keepalive=self._settings.stream.keepalive_seconds,
                copy=copy,
                stream_error=self._dialect.stream_error,
            )
        except (ClientGone, asyncio.CancelledError):
            self._finish(passage.flagged("client_gone"), Outcome(0, copy.text(), partial=True))
            raise
        except UpstreamBroken as error:
            self._finish(passage.flagged("upstream_broken", str(error)), Outcome(200, copy.text(), sse=True, partial=True))
            raise
        except GoalkeeperError as error:
            self._finish(passage.flagged(error.code, str(error)), Outcome(error.status))
            raise
        self._finish(passage, Outcome(reply.status, copy.text(reply.header("content-encoding")), sse=reply.sse))

    async def _decided(self, call: Call) -> Passage:
        """Decides what goes out. Fails open: an error inside costs the rewriting, never the request."""
        passage = Passage(call, new_ulid(), call.body)
        try:
            transcript = self._dialect.parse(call.body)
            await self._vocabulary(call, transcript)
            case = await self._conversations.follow(call, transcript, passage.receipt)
            passage.case = case
            if case.unverified:
                passage = passage.flagged("unverified_user_quote", f"no human turn holds: {'; '.join(case.unverified)[:400]}")
            return await self._planned(passage)
        except UnreadableBody as error:
            return passage.flagged("unreadable_body", str(error))
        except Exception as error:  # noqa: BLE001  the one place that fails open (promise P5)
            return self._failed_open(passage, error)

    def _failed_open(self, passage: Passage, error: Exception) -> Passage:
        flag = "invalid_rewrite" if isinstance(error, InvalidRewrite) else "failed_open"
        self._counters.add("failures_open_total", flag)
        self._journal.failed(passage.receipt, error)
        if self._settings.on_failure == "refuse":
            raise GoalkeeperError(f"refused, as on_failure says: {error}") from error
        passage = passage.flagged(flag, f"{type(error).__name__}: {error}")
        return self._safest(passage)

    def _safest(self, passage: Passage) -> Passage:
        """The last good form plus the new tail; the client's own bytes when there is none or it can't be built."""
        case = passage.case
        passage.body, passage.plan = passage.call.body, None
        if case is None or case.view is None or case.state is None:
            return passage
        policy = passage.policy or self._policy(case)
        good = tuple(one for one in case.state.memory.insertions if one.id in case.state.good)
        try:
            plan = make_plan(case.view, case.branch, Memory(insertions=good), policy, self._tools, bare=True)
        except GoalkeeperError:
            return passage
        return self._with_plan(passage, plan)

    async def _planned(self, passage: Passage) -> Passage:
        case = passage.case
        if case is None or case.view is None or case.state is None:
            return passage
        policy = passage.policy = self._policy(case)
        if passage.call.header("x-goalkeeper-bypass") in ("1", "true"):
            return passage.flagged("bypass")
        plan = make_plan(case.view, case.branch, case.state.memory, policy, self._tools)
        if self._settings.mode == "observe":
            passage.plan = plan
            return passage.flagged("observe")
        if plan.kind == "compaction" and self._settings.summarizer.when == "inline":
            plan = await self._with_summary(passage, plan)
        return await self._kept(passage, plan)

    async def _with_summary(self, passage: Passage, plan: Plan) -> Plan:
        """Waits for a model-written summary of what leaves, and plans again with it; the digest stands without it."""
        case, policy = passage.case, passage.policy
        assert case is not None
        assert case.view is not None
        assert case.state is not None
        assert policy is not None
        try:
            summary = await self._summarizer.summary(passage.call, case.view, plan.fresh[-1], policy)
        except GoalkeeperError as error:
            passage.flagged("compaction_failed", str(error))
            return plan
        passage.summary = summary
        memory = replace(case.state.memory, summary=summary)  # the state may have moved on while we waited
        return make_plan(case.view, case.branch, memory, policy, self._tools)

    async def _kept(self, passage: Passage, plan: Plan) -> Passage:
        """Stores what is new before it is used, and takes it into the branch's memory."""
        case = passage.case
        assert case is not None
        assert case.state is not None
        if plan.fresh:
            await self._conversations.keep_insertions(case, plan.fresh)
        memory = case.state.memory
        if not (plan.fresh or plan.stuck or memory.stuck_at):
            return self._with_plan(passage, plan)
        stuck = len(case.view.keys) if plan.stuck and case.view else 0
        if stuck and memory.stuck_at and "compaction_not_possible" in plan.flags and not plan.notes:
            stuck = memory.stuck_at  # still waiting: the count runs from the attempt
        case.state.memory = replace(
            memory,
            insertions=memory.insertions + plan.fresh,
            stuck_at=stuck,
            summary=None if plan.kind == "compaction" else memory.summary,
        )
        return self._with_plan(passage, plan)

    def _with_plan(self, passage: Passage, plan: Plan) -> Passage:
        case = passage.case
        assert case is not None
        passage.plan, passage.body = plan, passage.call.body
        for flag in plan.flags:
            passage.flagged(flag)
        passage.notes = (*passage.notes, *plan.notes)
        pieces: Sequence[bytes] = [piece.raw for piece in plan.pieces]
        if self._settings.repair.orphan_tool_results == "to_text":
            own = pieces or [message.raw for message in case.transcript.messages]
            mended = repaired([self._dialect.message(raw) for raw in own], self._dialect)
            if mended is not None:
                pieces = mended
                passage.flagged("orphan_repaired", "tool results without their calls became plain text")
        if pieces:
            passage.body = body_of(self._dialect, case.transcript, plan, pieces)
        return passage

    def _policy(self, case: Case) -> Policy:
        settings = self._settings
        budget = self._budget(case.call, case.transcript)
        return Policy(
            mode=settings.mode,
            budget=budget,
            target=settings.target,
            keep_recent=settings.keep_recent,
            history=settings.history,
            pin_tokens=budget.pins(settings.pins.max_tokens),
            pins_hard=settings.pins.max_tokens is not None,
            strict=(
                settings.strict_roles
                or self._dialect.name in ALTERNATING
                or (case.state is not None and case.state.memory.strict)
            ),
            ratio=self._calibrations.ratio(case.transcript.model),
            dialect=self._dialect.name,
        )

    def _budget(self, call: Call, transcript: Transcript) -> Budget:
        settings, model = self._settings, transcript.model
        limits = settings.limits_of(model)
        asked = _positive(call.header("x-goalkeeper-budget"))
        return budget_of(
            asked=asked or limits.budget or 0,
            window=self._calibrations.window(model, limits.window),
            max_output=transcript.max_output,
            share=settings.trigger,
            mode=settings.mode,
        )

    async def _vocabulary(self, call: Call, transcript: Transcript) -> None:
        """Loads the vocabulary with the first request: in the background while the body surely fits without a count."""
        if self._counter.ready:
            return
        if self._loading is None:
            self._loading = asyncio.create_task(asyncio.to_thread(self._counter.load))
        trigger = self._budget(call, transcript).trigger
        if len(call.body) > (trigger or _ROUGH_BYTES):  # a token has at least one byte
            await self._loading

    async def _committed(self, passage: Passage) -> None:
        """Waits until the new turns of the request are on disk: nothing is answered that could be forgotten."""
        if passage.case is not None and passage.case.stored is not None:
            try:
                await passage.case.stored
            except GoalkeeperError as error:
                self._counters.add("failures_open_total", "store")
                self._journal.failed(passage.receipt, error)

    async def _accepted(self, passage: Passage, sink: Sink) -> tuple[Passage, Reply]:
        """Sends the body; a refusal of a body that we made or that is too long gets one second try before the first byte."""
        reply = await self._sent(passage, sink)
        if reply.status < 400 or passage.case is None or passage.case.view is None or sink.opened:
            return passage, reply
        refusal = await reply.head(_REFUSAL_BYTES)
        second = await self._second(passage, reply.status, refusal)
        if second is None:
            return passage, reply
        reply.close()
        self._counters.add("retries_total")
        again = await self._sent(second, sink)
        if again.status < 400 and second.case is not None:
            self._conversations.refuse(second.case, second.suspects)  # so it was our plan, and not the client's mistake
        return second, again

    async def _second(self, passage: Passage, status: int, refusal: bytes) -> Passage | None:
        found = overflow(status, refusal)
        if found is not None:
            return await self._smaller(passage, found) if self._settings.overflow.retry else None
        if passage.rewritten and 400 <= status < 500 and status not in _RATE_OR_AUTH:
            bare = await self._without_reasoning(passage) if is_refusal(status, refusal) else None
            return bare or self._safer(passage, status)
        return None

    async def _without_reasoning(self, passage: Passage) -> Passage | None:
        """Plans again for an upstream that drops no signed reasoning; None where none of it can leave now."""
        case, plan, policy = passage.case, passage.plan, passage.policy
        asked = drops(plan.insertions) if plan else frozenset()
        if not asked or case is None or case.view is None or case.state is None or policy is None:
            return None
        memory = replace(case.state.memory, refused=case.state.memory.refused | asked)
        try:
            bare = make_plan(case.view, case.branch, memory, policy, self._tools)
        except InvalidRewrite as error:
            self._journal.failed(passage.receipt, error)
            return None
        if not bare.fresh:
            return None
        passage.flagged("plan_refused", "the upstream drops no reasoning whose signature no longer matches")
        return await self._kept(replace(passage, retried=True, suspects=asked), bare)

    async def _smaller(self, passage: Passage, found: Overflow) -> Passage | None:
        """Compacts to the target, or to half of what the refused body measured, whichever is less."""
        case, policy = passage.case, passage.policy
        assert case is not None
        assert case.view is not None
        assert case.state is not None
        if policy is None or self._settings.mode == "observe" or "bypass" in passage.flags:
            return None
        self._calibrations.overflowed(case.transcript.model, found.window)
        policy = self._policy(case)
        sent = passage.plan.tokens_out if passage.plan else 0
        aims = [int(policy.target * policy.budget.size), sent // 2]
        aim = min((one for one in aims if one > 0), default=0)
        try:
            plan = make_plan(case.view, case.branch, case.state.memory, policy, self._tools, aim=aim)
        except InvalidRewrite as error:
            self._journal.failed(passage.receipt, error)
            return None
        if not plan.fresh:
            return None
        second = await self._kept(replace(passage, policy=policy, retried=True), plan)
        return second.flagged("overflow_retry")

    def _safer(self, passage: Passage, status: int) -> Passage | None:
        """Leaves out what is new in the refused body; when nothing is new, takes the client's own bytes if they fit."""
        case, plan = passage.case, passage.plan
        assert case is not None
        assert case.state is not None
        if plan is None:
            return None
        sent = frozenset(one.id for one in plan.insertions)
        new = sent - frozenset(case.state.good)
        passage.flagged("plan_refused", f"the upstream answered {status} to a rewritten body")
        again = replace(passage, retried=True, suspects=new or sent)
        safer = self._safest(again) if new else self._original(again)
        return safer if safer is not None and safer.body != passage.body else None

    @staticmethod
    def _original(passage: Passage) -> Passage | None:
        plan, policy = passage.plan, passage.policy
        too_long = plan and policy and policy.budget.hard and plan.tokens_in > policy.budget.hard
        passage.body, passage.plan = passage.call.body, None
        return None if too_long else passage

    async def _sent(self, passage: Passage, sink: Sink) -> Reply:
        call, stream = passage.call, self._settings.stream
        sending = self._upstream.send(call.method, call.path, headers_of(passage), passage.body, identity=True)
        streaming = passage.case is not None and passage.case.transcript.stream
        if not (stream.early_open and streaming):
            return await sending
        return await early_reply(
            sending,
            sink,
            keepalive=stream.keepalive_seconds,
            headers=self._journal.headers(passage),
            stream_error=self._dialect.stream_error,
        )

    def _finish(self, passage: Passage, outcome: Outcome) -> None:
        """Learns from the answer and writes the receipt; an error here costs the record, never the answer."""
        try:
            answer = self._dialect.answer(outcome.body, sse=outcome.sse)
            case = passage.case
            if case is not None and outcome.status == 200:
                self._learn(passage, answer.prompt_tokens)
                self._prepare_summary(passage)
            receipt = self._journal.receipt(passage, outcome, answer)
            if case is not None:
                self._conversations.close(case, receipt, answer if outcome.status == 200 else None)
        except Exception as error:  # noqa: BLE001  the answer is out already (promise P5)
            self._counters.add("failures_open_total", "after_answer")
            self._journal.failed(passage.receipt, error)

    def _learn(self, passage: Passage, prompt_tokens: int) -> None:
        case, plan = passage.case, passage.plan
        if case is None or case.state is None:
            return
        if plan is not None and passage.rewritten:
            case.state.good = tuple(one.id for one in plan.insertions)
        if plan is None or not prompt_tokens or not self._counter.ready:
            return
        estimate = plan.estimate_out if passage.rewritten else plan.estimate_in
        known = self._calibrations.reported(case.transcript.model, estimate, prompt_tokens)
        told = (estimate, prompt_tokens) if known else (0, 0)
        case.state.memory = replace(case.state.memory, estimate=told[0], reported=told[1])
        if not known:
            passage.flagged("usage_outside", f"reported {prompt_tokens} tokens for an estimate of {estimate}")

    def _prepare_summary(self, passage: Passage) -> None:
        """Starts the summary for the next cut when that is near (summarizer.when: background)."""
        case, policy, plan = passage.case, passage.policy, passage.plan
        if self._settings.summarizer.when != "background" or case is None or policy is None or plan is None:
            return
        if case.state is not None and policy.budget.trigger and plan.tokens_out > 0.8 * policy.budget.trigger:
            self._summarizer.prepare(passage.call, case, policy, self._tools)


def _positive(text: str) -> int:
    return int(text) if text.isdecimal() and text.isascii() and len(text) < 10 else 0

