"""What happens to one model request, from the client's bytes to the model and back.

The only place that fails open: whatever goes wrong inside, the safest body goes out, and receipt, header and counter
say so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import msgspec
from msgspec.structs import replace

from proxy.clients import Profiles
from proxy.compaction.draft import Tools
from proxy.compaction.overflow import Overflow, overflow
from proxy.compaction.thinking import is_refusal
from proxy.dialects.base import Dialect
from proxy.errors import ClientGone, GoalkeeperError, InvalidRewrite, UnreadableBody, UpstreamBroken
from proxy.exchange import Call, Copy, Incoming, Sink, early_reply, relay
from proxy.pins.rules import RuleSet
from proxy.pipeline.calibration import Calibrations
from proxy.pipeline.case import Case
from proxy.pipeline.classifying import Classifier
from proxy.pipeline.condensing import Condenser
from proxy.pipeline.conversation import Conversations
from proxy.pipeline.glance import Glance
from proxy.pipeline.journal import Journal
from proxy.pipeline.learning import learn
from proxy.pipeline.outgoing import headers_of
from proxy.pipeline.passage import Outcome, Passage
from proxy.pipeline.planner import Planner
from proxy.pipeline.routing import Routing, model_of
from proxy.pipeline.summarizing import Summarizer
from proxy.pipeline.usage import told
from proxy.pipeline.weighing import doubtful, read_tokens
from proxy.redaction import Sealer
from proxy.settings import Settings
from proxy.store.ids import new_ulid
from proxy.telemetry import Counters
from proxy.tokens import Counter
from proxy.transcript import Answer, Transcript

_COMPACT_PATH = "/responses/compact"
_RATE_OR_AUTH = (401, 402, 403, 407, 408, 425, 429)
_OK = 200
_REFUSED = range(400, 500)
_REFUSAL_BYTES = 1 << 20
_ON_ITS_WAY_SECONDS = 0.002  # what a quiet request brings is written down this long after it was sent
_SUMMARIZE_AT = 0.8  # of the trigger: from here on a summary for the next cut is prepared


class Equipment(msgspec.Struct, frozen=True):
    """What a pipeline works with."""

    settings: Settings
    dialect: Dialect
    conversations: Conversations
    routing: Routing
    calibrations: Calibrations
    counter: Counter
    counters: Counters
    journal: Journal
    seal: Sealer
    classifier: Classifier | None = None


class Pipeline:
    """Answers model requests of one dialect."""

    def __init__(self, equipment: Equipment) -> None:
        self._with = equipment
        self._dialect = equipment.dialect
        self._journal = equipment.journal
        settings, dialect, counter = equipment.settings, equipment.dialect, equipment.counter
        self._tools = Tools(counter.text, dialect, dialect.message)
        self._summarizer = Summarizer(settings.summarizer, dialect, equipment.routing, counter, equipment.seal)
        self._condenser = Condenser(settings.reasoning, dialect, equipment.routing, equipment.counters)
        self._planner = Planner(
            settings,
            dialect,
            equipment.conversations,
            equipment.calibrations,
            equipment.journal,
            self._summarizer,
            self._tools,
        )
        self._glance = Glance(settings, equipment.conversations)
        self._unwritten: list[Passage] = []  # quiet requests whose turns aren't written down yet, oldest first
        self._loading: asyncio.Task[None] | None = None

    def use(self, rules: RuleSet, profiles: Profiles) -> None:
        """Takes other rules and profiles, for what people say from now on."""
        self._with.conversations.use(rules, profiles)
        self._glance.forget()

    async def handle(self, call: Call, sink: Sink) -> None:
        """Answers one call. Raises GoalkeeperError when the client has to get an error of ours."""
        passage = await self.decided(call)
        copy = Copy()
        reply: Incoming | None = None
        try:
            passage, reply = await self._accepted(passage, sink)
            await self._committed(passage)
            await relay(
                reply,
                told(passage, sink) if self._with.settings.usage == "client" else sink,
                headers=self._journal.headers(passage),
                keepalive=self._with.settings.stream.keepalive_seconds,
                copy=copy,
                stream_error=self._dialect.stream_error,
            )
        except (ClientGone, asyncio.CancelledError):
            self._finish(passage, self._left(passage, reply, copy))
            raise
        except UpstreamBroken as error:
            broken = passage.flagged("upstream_broken", str(error))
            self._finish(broken, Outcome(200, copy.text(), sse=True, partial=True))
            raise
        except GoalkeeperError as error:
            self._finish(passage.flagged(error.code, str(error)), Outcome(error.status))
            raise
        await self._weigh(passage, Outcome(reply.status, copy.text(reply.header("content-encoding")), sse=reply.sse))

    async def _weigh(self, passage: Passage, outcome: Outcome) -> None:
        """Finishes; a body whose guess is in doubt by what the upstream says to have read is counted before that."""
        self._write_down()
        answer: Answer | None = None
        try:
            with self._harmless(passage, "after_answer"):
                answer, case = self._dialect.answer(outcome.body, sse=outcome.sse), passage.case
                track = case.track if case is not None and not case.exact and outcome.status == _OK else None
                known = track is not None and track.state.weight.truncated
                if case is not None and track and not known and doubtful(passage.estimate, read_tokens(answer)):
                    passage.heard = self._with.conversations.heard(case, answer)
                    if self._loading is not None:
                        await self._loading
                    passage.weight = await self._with.conversations.measure.weighed(case)
        finally:
            self._finish(passage, outcome, answer)

    @contextmanager
    def _harmless(self, passage: Passage, when: str) -> Iterator[None]:
        """Lets an error in what is done once bytes are out cost the record, never the answer (promise P5)."""
        try:
            yield
        except Exception as error:  # noqa: BLE001  as it says
            self._with.counters.add("failures_open_total", when)
            self._journal.failed(passage.receipt, error)

    def _left(self, passage: Passage, reply: Incoming | None, copy: Copy) -> Outcome:
        """Tells how an exchange ended whose client left: one that left behind the answer's last event got all of it."""
        sse = reply is not None and reply.sse
        body = copy.text(reply.header("content-encoding") if reply is not None else "")
        if reply is not None and reply.status == _OK and self._dialect.answer(body, sse=sse).complete:
            return Outcome(_OK, body, sse=sse)
        passage.flagged("client_gone")
        return Outcome(0, body, sse=sse, partial=True)

    async def decided(self, call: Call) -> Passage:
        """Decides what goes out. Fails open: an error inside costs the rewriting, never the request."""
        passage = Passage(call, new_ulid(), call.body)
        self._write_down()
        try:
            transcript = passage.transcript = self._read(call)
            if transcript.continues:
                held = self._with.conversations.held(call, transcript.continues)
                if held is None:
                    return passage.flagged("server_state", "goes on from what only the upstream knows")
                transcript = replace(transcript, messages=(*held.messages, *transcript.messages))
                passage.held = held.insertions
            transcript, unknown = self._with.conversations.resolved(call, transcript)
            passage.transcript = transcript
            if unknown:
                passage.flagged("unknown_reference", f"only the upstream knows: {', '.join(unknown)[:400]}")
            passage.budget = self._planner.budget(call, transcript)
            limit = self._planner.limit(passage.budget, transcript.model)
            passage.quiet = self._glance.find(call, transcript, limit)
            if passage.quiet is not None:
                return self._on_its_way(passage)
            await self._vocabulary(call, limit)
            case = passage.case = await self._with.conversations.follow(call, transcript, passage.receipt, limit)
            if case.unverified:
                passage.flagged("unverified_user_quote", f"no human turn holds: {'; '.join(case.unverified)[:400]}")
            return await self._planner.planned(passage, case)
        except UnreadableBody as error:
            return passage.flagged("unreadable_body", str(error))
        except Exception as error:  # noqa: BLE001  the one place that fails open (promise P5)
            return self._failed_open(passage, error)

    def _read(self, call: Call) -> Transcript:
        """Parses a body; on one path the server is asked to compact without a word about it in the body."""
        transcript = self._dialect.parse(call.body)
        return replace(transcript, compacts=True) if call.path.partition("?")[0].endswith(_COMPACT_PATH) else transcript

    def _on_its_way(self, passage: Passage) -> Passage:
        """Lets a quiet request out before it is written down: when the model works on it, or before the next one."""
        self._unwritten.append(passage)
        asyncio.get_running_loop().call_later(_ON_ITS_WAY_SECONDS, self._write_down)
        return passage

    def _write_down(self) -> None:
        """Follows the quiet requests that are on their way; an error here costs the record, never the answer."""
        while self._unwritten:
            passage = self._unwritten.pop(0)
            with self._harmless(passage, "after_sending"):
                self._follow_quiet(passage)

    def _follow_quiet(self, passage: Passage) -> None:
        transcript, quiet = passage.transcript, passage.quiet
        if transcript is not None and quiet is not None:
            case = passage.case = self._with.conversations.noted(passage.call, transcript, passage.receipt, quiet)
            self._planner.confirmed(passage, case)

    def _failed_open(self, passage: Passage, error: Exception) -> Passage:
        flag = "invalid_rewrite" if isinstance(error, InvalidRewrite) else "failed_open"
        self._with.counters.add("failures_open_total", flag)
        self._journal.failed(passage.receipt, error)
        if self._with.settings.on_failure == "refuse":
            raise GoalkeeperError(f"refused, as on_failure says: {error}") from error
        return self._planner.safest(passage.flagged(flag, f"{type(error).__name__}: {error}"))

    async def _vocabulary(self, call: Call, limit: float) -> None:
        """Loads the vocabulary with the first request; waits for it where the body may be above its limit."""
        if self._with.counter.ready:
            return
        if self._loading is None:
            self._loading = asyncio.create_task(asyncio.to_thread(self._with.counter.load))
        if limit and len(call.body) > limit:  # a token has at least one byte
            await self._loading

    async def _committed(self, passage: Passage) -> None:
        """Waits until what a person said is on disk: nothing is answered that could be forgotten."""
        if passage.case is not None and passage.case.stored is not None:
            try:
                await passage.case.stored
            except GoalkeeperError as error:
                self._with.counters.add("failures_open_total", "store")
                self._journal.failed(passage.receipt, error)

    async def _accepted(self, passage: Passage, sink: Sink) -> tuple[Passage, Incoming]:
        """Sends the body; a refused rewrite and a body that is too long get one second try before the first byte."""
        reply = await self._sent(passage, sink)
        if reply.status >= _REFUSED.start:
            self._write_down()
        if reply.status < _REFUSED.start or passage.case is None or passage.case.track is None or sink.opened:
            return passage, reply
        second = await self._second(passage, reply.status, await reply.head(_REFUSAL_BYTES))
        if second is None:
            return passage, reply
        reply.close()
        self._with.counters.add("retries_total")
        again = await self._sent(second, sink)
        if again.status < _REFUSED.start and second.case is not None:
            # So it was our plan that was refused, and not a mistake of the client's own.
            self._with.conversations.refuse(second.case, second.suspects)
        return second, again

    async def _second(self, passage: Passage, status: int, refusal: bytes) -> Passage | None:
        case = passage.case
        if case is None or "bypass" in passage.flags:
            return None
        found = overflow(status, refusal)
        if found is not None:
            return await self._smaller(passage, case, found) if self._with.settings.overflow.retry else None
        if passage.rewritten and status in _REFUSED and status not in _RATE_OR_AUTH:
            bare = await self._planner.without_reasoning(passage, case) if is_refusal(status, refusal) else None
            return bare or self._planner.safer(passage, case, status)
        return None

    async def _smaller(self, passage: Passage, case: Case, found: Overflow) -> Passage | None:
        """Plans a smaller body; what was only guessed so far is counted first."""
        if self._loading is not None:
            await self._loading
        exact = passage.case = await self._with.conversations.measure.counted(case)
        return await self._planner.smaller(passage, exact, found)

    async def _sent(self, passage: Passage, sink: Sink) -> Incoming:
        call, stream = passage.call, self._with.settings.stream
        transcript = passage.transcript
        model = transcript.model if transcript else model_of(call.body)
        sender = self._with.routing.sender(model, call.path)
        sending = sender.send(call.method, call.path, headers_of(passage), passage.body, identity=True)
        if not (stream.early_open and transcript is not None and transcript.stream):
            return await sending
        return await early_reply(
            sending,
            sink,
            keepalive=stream.keepalive_seconds,
            headers=self._journal.headers(passage),
            stream_error=self._dialect.stream_error,
        )

    def _finish(self, passage: Passage, outcome: Outcome, answer: Answer | None = None) -> None:
        """Learns from the answer and writes the receipt; an error here costs the record, never the answer."""
        self._write_down()
        with self._harmless(passage, "after_answer"):
            answer = answer or self._dialect.answer(outcome.body, sse=outcome.sse)
            case, answered = passage.case, outcome.status == 200
            if answered:
                learn(passage, answer, self._with.calibrations, self._journal)
                self._prepare_summary(passage)
                self._glance.learn(passage)
                self._condenser.prepare(passage, self._tools)
                self._classify(passage)
            receipt = self._journal.receipt(passage, outcome, answer)
            if case is not None:
                calls = partial(self._journal.calls, case, answer)
                said = answer if answered else None
                self._with.conversations.close(
                    case, receipt, said, passage.standing, calls, passage.body, passage.heard
                )

    def _classify(self, passage: Passage) -> None:
        """Starts to ask a model about what the rules left open (classifier.model)."""
        classifier, case = self._with.classifier, passage.case
        if classifier is not None and case is not None and "bypass" not in passage.flags:
            classifier.consider(passage.call, case, self._with.conversations.rules)

    def _prepare_summary(self, passage: Passage) -> None:
        """Starts the summary for the next cut when that is near (summarizer.when: background)."""
        case, policy, plan = passage.case, passage.policy, passage.plan
        if self._with.settings.summarizer.when != "background" or case is None or policy is None or plan is None:
            return
        near = policy.budget.trigger and plan.tokens_out > _SUMMARIZE_AT * policy.budget.trigger
        if near and case.track is not None:
            self._summarizer.prepare(passage.call, case.branch, case.track, policy, self._tools)
