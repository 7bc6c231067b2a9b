"""Decides what goes out for a request: the limits that hold, the plan, and the safer forms after a refusal."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from proxy.compaction.blocks import user_words
from proxy.compaction.budget import Budget, budget_of
from proxy.compaction.draft import Memory, Policy, Tools
from proxy.compaction.overflow import Overflow
from proxy.compaction.plan import Plan, make_plan
from proxy.compaction.repair import MENDED, repaired
from proxy.compaction.summary import Summary
from proxy.compaction.thinking import drops
from proxy.compaction.validity import ALTERNATING, ITEMISED
from proxy.dialects.base import Dialect
from proxy.errors import GoalkeeperError, InvalidRewrite
from proxy.exchange import Call
from proxy.pins.keep import Shown
from proxy.pins.lifecycle import amend
from proxy.pipeline.calibration import Calibrations
from proxy.pipeline.case import Case, Track
from proxy.pipeline.conversation import Conversations
from proxy.pipeline.journal import Journal
from proxy.pipeline.learning import catch_up
from proxy.pipeline.outgoing import body_of
from proxy.pipeline.passage import Passage
from proxy.pipeline.summarizing import Summarizer
from proxy.settings import Settings
from proxy.settings.model import ModelLimits
from proxy.transcript import Transcript

_MODELS = 256  # model names whose limits are remembered
_DIGITS = 9  # of a budget header that can be meant


class Planner(msgspec.Struct, frozen=True):
    """Plans requests of one dialect."""

    settings: Settings
    dialect: Dialect
    conversations: Conversations
    calibrations: Calibrations
    journal: Journal
    summarizer: Summarizer
    tools: Tools
    _limits: dict[str, ModelLimits] = {}

    async def planned(self, passage: Passage, case: Case) -> Passage:
        """Plans what goes out for a linked request. Raises InvalidRewrite, StoreError."""
        track = case.track
        if track is None:
            return self._assisted(passage, case) if self.settings.assist else passage
        catch_up(case, track, self.calibrations)
        policy = passage.policy = self.policy(case, track, passage.budget)
        if case.transcript.options.get("truncation") == b'"auto"' and not policy.budget.trigger:
            passage.flagged("truncation_auto", "the upstream may drop the oldest items, and its window isn't known")
        if passage.call.header("x-goalkeeper-bypass") in ("1", "true"):
            return passage.flagged("bypass")
        memory = track.state.memory
        if self.settings.facts.recall and case.link.relation == "new":
            memory = await self._remembering(passage, case, memory)
        plan = make_plan(track.view, case.branch, memory, policy, self.tools)
        if self.settings.mode == "observe":
            passage.plan = plan
            return passage.flagged("observe")
        if plan.kind == "compaction" and self.settings.summarizer.when == "inline":
            plan = await self._with_summary(passage, case, track, plan)
        return await self._kept(passage, case, track, plan)

    def confirmed(self, passage: Passage, case: Case) -> None:
        """Plans a quiet request that is out already: nothing was to be done, or the receipt says so."""
        if case.track is None:
            return
        policy = passage.policy = self.policy(case, case.track, passage.budget)
        if passage.quiet is not None and passage.quiet.messages == case.transcript.messages:
            passage.plan = passage.quiet.plan
            return
        plan = make_plan(case.track.view, case.branch, case.track.state.memory, policy, self.tools)
        if plan.insertions:
            passage.flagged("unforeseen", "it went out as it came, and something would have been put back or cut")
        passage.plan = plan

    async def _remembering(self, passage: Passage, case: Case, memory: Memory) -> Memory:
        """Gives the memory of a new session with what is known of its project; the request doesn't depend on it."""
        facts = self.settings.facts
        try:
            known = await self.conversations.recollections(case, everywhere=facts.scope == "project")
        except GoalkeeperError as error:
            passage.flagged("recall_left_out", str(error))
            return memory
        return replace(memory, recall=known, recall_tokens=facts.recall_tokens)

    def _assisted(self, passage: Passage, case: Case) -> Passage:
        """Adds the binding words of the branch to the agent's own order to summarise."""
        state = self.conversations.state_of(case.branch)
        messages = case.transcript.messages
        if case.link.relation != "summary" or state is None or messages[-1].role != "user":
            return passage
        shown = [Shown(pin, pin.text, verbatim=True) for pin in amend(state.ledger, state.edits).active]
        if not shown:
            return passage
        words = user_words(shown, [], shown[0].pin.turn, shown[-1].pin.turn)
        order = self.dialect.extend_message(messages[-1].raw, f"Keep these words of the user unchanged.\n\n{words}")
        passage.body = self.dialect.render(case.transcript, [*(one.raw for one in messages[:-1]), order])
        return passage.flagged("assisted")

    async def smaller(self, passage: Passage, case: Case, found: Overflow) -> Passage | None:
        """Compacts to the target, or to half of what the refused body measured, whichever is less."""
        track, plan = case.track, passage.plan
        if track is None or plan is None or self.settings.mode == "observe":
            return None
        self.calibrations.overflowed(case.transcript.model, found.window)
        policy = self.policy(case, track)
        refused = plan.tokens_out if case.exact and plan.insertions else round(track.view.total() * policy.ratio)
        aims = (int(policy.target * policy.budget.size), refused // 2)
        aim = min((one for one in aims if one > 0), default=0)
        policy = replace(policy, pin_tokens=min(policy.pin_tokens, aim // 2))
        try:
            less = make_plan(track.view, case.branch, track.state.memory, policy, self.tools, aim=aim)
        except InvalidRewrite as error:
            self.journal.failed(passage.receipt, error)
            return None
        if not less.fresh:
            return None
        second = replace(passage, policy=policy, retried=True)
        return (await self._kept(second, case, track, less)).flagged("overflow_retry")

    def safer(self, passage: Passage, case: Case, status: int) -> Passage | None:
        """Leaves out what is new in the refused body; when nothing is new, takes the client's own bytes if they fit."""
        track, plan = case.track, passage.plan
        if track is None or plan is None:
            return None
        sent = frozenset(one.id for one in plan.insertions)
        new = sent - frozenset(track.state.good)
        passage.flagged("plan_refused", f"the upstream answered {status} to a rewritten body")
        again = replace(passage, retried=True, suspects=new or sent)
        other = self.safest(again) if new else _original(again)
        return other if other is not None and other.body != passage.body else None

    async def without_reasoning(self, passage: Passage, case: Case) -> Passage | None:
        """Plans again for an upstream that drops no signed reasoning; None where none of it can leave now."""
        track, plan, policy = case.track, passage.plan, passage.policy
        asked = drops(plan.insertions) if plan else frozenset()
        if not asked or track is None or policy is None:
            return None
        memory = replace(track.state.memory, refused=track.state.memory.refused | asked)
        try:
            bare = make_plan(track.view, case.branch, memory, policy, self.tools)
        except InvalidRewrite as error:
            self.journal.failed(passage.receipt, error)
            return None
        if not bare.fresh:
            return None
        passage.flagged("plan_refused", "the upstream drops no reasoning whose signature no longer matches")
        return await self._kept(replace(passage, retried=True, suspects=asked), case, track, bare)

    def safest(self, passage: Passage) -> Passage:
        """The last good form plus the new tail; the client's own bytes when there is none or it can't be built."""
        case = passage.case
        passage.body, passage.plan = passage.call.body, None
        if case is None or case.track is None:
            return passage
        track = case.track
        good = tuple(one for one in track.state.memory.insertions if one.id in track.state.good)
        try:
            policy = passage.policy or self.policy(case, track)
            plan = make_plan(track.view, case.branch, Memory(insertions=good), policy, self.tools, bare=True)
        except GoalkeeperError:
            return passage
        return self._with_plan(passage, case, plan)

    def budget(self, call: Call, transcript: Transcript) -> Budget:
        """Gives the limits that hold for a request."""
        settings, model = self.settings, transcript.model
        limits = self._limits_of(model)
        asked = call.header("x-goalkeeper-budget")
        chosen = int(asked) if asked.isascii() and asked.isdecimal() and len(asked) <= _DIGITS else 0
        return budget_of(
            asked=chosen or limits.budget or 0,
            window=self.calibrations.window(model, limits.window),
            max_output=transcript.max_output,
            share=settings.trigger,
            mode=settings.mode,
        )

    def limit(self, budget: Budget, model: str) -> float:
        """Gives the trigger in tokens of our own count, 0 where nothing triggers a cut."""
        return budget.trigger / max(self.calibrations.ratio(model), 1.0)

    def _limits_of(self, model: str) -> ModelLimits:
        if model not in self._limits:
            if len(self._limits) >= _MODELS:
                self._limits.clear()
            self._limits[model] = self.settings.limits_of(model)
        return self._limits[model]

    def policy(self, case: Case, track: Track, known: Budget | None = None) -> Policy:
        """Gives what settings and request ask of the plan; the limits are worked out anew unless they are `known`."""
        settings = self.settings
        budget = known or self.budget(case.call, case.transcript)
        return Policy(
            mode=settings.mode,
            budget=budget,
            target=settings.target,
            keep_recent=settings.keep_recent,
            history=settings.history,
            pin_tokens=budget.pins(settings.pins.max_tokens),
            pins_hard=settings.pins.max_tokens is not None,
            strict=settings.strict_roles or track.state.memory.strict or self.dialect.name in ALTERNATING,
            ratio=self.calibrations.ratio(case.transcript.model),
            dialect=self.dialect.name,
        )

    async def _with_summary(self, passage: Passage, case: Case, track: Track, plan: Plan) -> Plan:
        """Waits for a model-written summary of what leaves, and plans again with it; the digest stands without it."""
        policy = passage.policy or self.policy(case, track)
        try:
            summary = await self.summarizer.summary(passage.call, track.view, plan.fresh[-1], policy)
        except GoalkeeperError as error:
            passage.flagged("compaction_failed", str(error))
            return plan
        passage.summary = summary
        memory = replace(track.state.memory, summary=summary)  # the state may have moved on while we waited
        return make_plan(track.view, case.branch, memory, policy, self.tools)

    async def _kept(self, passage: Passage, case: Case, track: Track, plan: Plan) -> Passage:
        """Stores what is new before it is used, and takes it into the branch's memory."""
        if plan.fresh:
            await self.conversations.keep_insertions(case, plan.fresh)
        memory = track.state.memory
        used = memory.block if memory.block and any(one.raw == memory.block.raw for one in plan.fresh) else None
        if used is not None:
            passage.summary = Summary("", 0, used.end, used.model, used.tokens)
        if plan.fresh or plan.stuck or memory.stuck_at:
            stuck = len(track.view.keys) if plan.stuck else 0
            if stuck and memory.stuck_at and not plan.notes:
                stuck = memory.stuck_at  # still waiting: the count runs from the attempt
            track.state.memory = replace(
                memory,
                insertions=memory.insertions + plan.fresh,
                stuck_at=stuck,
                summary=None if plan.kind == "compaction" else memory.summary,
                block=None if used is not None else memory.block,
            )
        return self._with_plan(passage, case, plan)

    def _with_plan(self, passage: Passage, case: Case, plan: Plan) -> Passage:
        passage.plan, passage.body = plan, passage.call.body
        for flag in plan.flags:
            passage.flagged(flag)
        passage.notes = (*passage.notes, *plan.notes)
        pieces: Sequence[bytes] = [piece.raw for piece in plan.pieces]
        mended = None
        if self.settings.repair.orphan_tool_results == "to_text":
            own = pieces or [message.raw for message in case.transcript.messages]
            near = self.dialect.name not in ITEMISED
            mended = repaired([self.dialect.message(raw) for raw in own], self.dialect, near=near)
            if mended is not None:
                pieces = mended
                passage.flagged(MENDED, "tool results without their calls became plain text")
        if pieces and (mended or not passage.held_already):
            passage.body = body_of(self.dialect, case.transcript, plan, pieces)
        return passage


def _original(passage: Passage) -> Passage | None:
    plan, policy = passage.plan, passage.policy
    too_long = plan and policy and policy.budget.hard and plan.tokens_in > policy.budget.hard
    passage.body, passage.plan = passage.call.body, None
    return None if too_long else passage
