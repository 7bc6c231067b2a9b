"""Asks a model in the background about human turns that the rules left open; off by default.

What it proposes becomes a candidate among the facts, and binds only where the settings say so. Whatever goes wrong is
counted and costs nothing but the proposal.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections import OrderedDict
from datetime import UTC, datetime
from functools import partial

import msgspec

from proxy.dialects.base import Dialect
from proxy.errors import GoalkeeperError
from proxy.exchange import Call, Copy
from proxy.facts import FactChange
from proxy.pins.proposals import (
    INSTRUCTION,
    RULE,
    Proposal,
    UnreadableProposals,
    checked,
    framed,
    is_open,
    own_words,
    read,
)
from proxy.pins.rules import RuleSet
from proxy.pipeline.candidates import Asked, Question, candidate, receipt_of
from proxy.pipeline.case import Case
from proxy.pipeline.routing import Sender
from proxy.pipeline.summarizing import PASSED_ON
from proxy.redaction import Sealer
from proxy.settings.model import Classifier as ClassifierSettings
from proxy.store.queries import Edit, edit_pin
from proxy.store.rows import Batch
from proxy.store.spending import Limits, reserve, spend
from proxy.store.sqlite import Store
from proxy.telemetry import Counters
from proxy.tokens import price_of
from proxy.transcript import Answer, HumanTurn
from proxy.upstream import Headers

INTERNAL = ("x-goalkeeper-internal", "classifier")
_PROPER_ENDS = ("stop", "end_turn", "completed")  # chat, Messages, Responses
_AT_ONCE = 2
_NEWEST = 8  # turns of one request: a long history that is seen for the first time isn't asked about from its beginning
_WAITING = 100  # turns that wait for their answer; more are left open
_ANSWER_BYTES = 64 << 10
_PAUSE_SECONDS = 300.0  # after an answer that says that asking again is no use now
_REMEMBERED = 10_000  # turns that were asked about


class Way(msgspec.Struct, frozen=True):
    """How the model is reached: through a sender, in a dialect, with a key of its own or the request's credentials."""

    sender: Sender
    dialect: Dialect
    key: str | None = None
    passes_credentials: bool = False

    def headers(self, call: Call) -> Headers:
        """Gives the headers of a question."""
        own: list[tuple[str, str]] = [("Content-Type", "application/json"), ("Accept", "application/json")]
        if self.key:
            own.append(("Authorization", f"Bearer {self.key}"))
        elif self.passes_credentials:
            own += [(name, value) for name, value in call.headers if name.lower() in PASSED_ON]
        return own


class Classifier:
    """Takes proposals of a model for turns that no rule has decided."""

    def __init__(self, settings: ClassifierSettings, way: Way, store: Store, seal: Sealer, counters: Counters) -> None:
        self._settings = settings
        self._way = way
        self._store = store
        self._seal = seal
        self._counters = counters
        self._limits = Limits(settings.requests_per_day, settings.tokens_per_day, settings.usd_per_day)
        self._room = asyncio.Semaphore(_AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()
        self._asked: OrderedDict[tuple[str, str, bytes], None] = OrderedDict()
        self._quiet_until = 0.0

    def consider(self, call: Call, case: Case, rules: RuleSet) -> None:
        """Starts to ask about the open turns that a request brought; nobody waits for it."""
        if case.track is None or call.header(INTERNAL[0]):  # a proxy before a proxy never asks about its questions
            return
        state, fresh = case.track.state, {message.digest for message in case.transcript.messages[case.new_from :]}
        new = [turn for turn in state.turns if turn.message in fresh][-_NEWEST:]
        for turn in new:
            if is_open(turn, state.ledger, rules, case.profile.name) and self._first(case, turn):
                self._start(Question(call, case, turn, self._masked(own_words(turn.text)), self._masked(turn.asked)))

    def _first(self, case: Case, turn: HumanTurn) -> bool:
        """Whether a turn wasn't asked about before: agents send the same words again and again."""
        mark = (case.scope.tenant, case.link.session, turn.key)
        if mark in self._asked:
            return False
        self._asked[mark] = None
        if len(self._asked) > _REMEMBERED:
            self._asked.popitem(last=False)
        return True

    def _masked(self, text: str) -> str:
        return self._seal.mask(text)

    def _start(self, question: Question) -> None:
        if len(self._tasks) >= _WAITING:
            self._counters.add("classifier_requests_total", "busy")
            return
        task = asyncio.create_task(self._answered(question))
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._counters.add("classifier_requests_total", "failed")

    async def _answered(self, question: Question) -> None:
        async with self._room:
            day = datetime.now(UTC).date().isoformat()
            outcome = await self._outcome(question, day)
            self._counters.add("classifier_requests_total", outcome.word)
            if outcome.status:
                await self._keep(question, outcome, day)

    async def _barred(self, day: str) -> str:
        """Says why nothing may be asked now, "" when it may; then the request is counted."""
        if asyncio.get_running_loop().time() < self._quiet_until:
            return "paused"
        if self._limits.usd is not None and await self._price() is None:
            return "price_unknown"
        counted = self._store.run(partial(reserve, day=day, limits=self._limits))
        return "" if await asyncio.wrap_future(counted) else "over_budget"

    async def _outcome(self, question: Question, day: str) -> Asked:
        barred = await self._barred(day)
        if barred:
            return Asked(barred)
        try:
            async with asyncio.timeout(self._settings.timeout_seconds):
                status, body = await self._ask(question)
        except TimeoutError:
            return Asked("timeout")
        except GoalkeeperError:
            return Asked("unreachable")
        if status != 200:
            if status < 500:  # wrong key, wrong model, too many requests: the next question fares no better
                self._quiet_until = asyncio.get_running_loop().time() + _PAUSE_SECONDS
            return Asked("refused", status)
        return self._judged(question, self._way.dialect.answer(body, sse=False), len(body))

    async def _ask(self, question: Question) -> tuple[int, bytes]:
        """Sends the question; gives status and body, no more of it than an answer can have."""
        way, settings = self._way, self._settings
        text = framed(question.words, question.asked)
        body = way.dialect.question(settings.model or "", INSTRUCTION, text, settings.max_tokens)
        headers = way.headers(question.call)
        reply = await way.sender.send("POST", way.dialect.path, headers, body, identity=True, own=(INTERNAL,))
        try:
            copy = Copy(_ANSWER_BYTES << 2)  # a packed answer may unpack to that, and no more
            copy.add(await reply.head(_ANSWER_BYTES))
            return reply.status, copy.text(reply.header("content-encoding"))
        finally:
            reply.close()

    def _judged(self, question: Question, answer: Answer, size: int) -> Asked:
        if size >= _ANSWER_BYTES:
            return Asked("too_large", 200, answer)
        if answer.refusal or answer.calls or answer.finish not in _PROPER_ENDS:
            return Asked("no_answer", 200, answer)
        try:
            proposed = read(answer.text)
        except UnreadableProposals:
            return Asked("unreadable", 200, answer)
        reveal = partial(self._reveal, question.turn.text)
        kept, dropped = checked(proposed, question.words, question.turn, reveal, self._settings.confidence)
        return Asked("answered", 200, answer, kept, dropped)

    def _reveal(self, text: str, quote: str) -> str:
        """Puts the hidden values of a turn back into a quote of it."""
        sealed = {one.token: (one.nonce, one.sealed) for one in self._seal.seal(text)[1]}
        return self._seal.unseal(quote, sealed.get)

    async def _keep(self, question: Question, outcome: Asked, day: str) -> None:
        """Writes candidates, pins, receipt and what was spent."""
        case, answer = question.case, outcome.answer
        price = await self._price()
        usd = price and price[0] * answer.prompt_tokens + price[1] * answer.completion_tokens
        spent = partial(spend, day=day, tokens=answer.prompt_tokens + answer.completion_tokens, usd=usd or 0.0)
        await asyncio.wrap_future(self._store.run(spent))
        receipt = receipt_of(question, outcome, self._masked(self._settings.model or ""), usd)
        facts = tuple(FactChange("proposed", receipt.at, candidate(question, one, receipt)) for one in outcome.kept)
        batch = Batch(case.scope.tenant, case.scope.namespace, request=receipt.id, receipt=receipt, facts=facts)
        await asyncio.wrap_future(self._store.submit(batch))
        self._counters.add("classifier_proposals_total", "kept", by=len(outcome.kept))
        for reason, count in outcome.dropped.items():
            self._counters.add("classifier_proposals_total", reason, by=count)
        if self._settings.pin and not _binds_already(question):
            for one in outcome.kept:
                await asyncio.wrap_future(self._store.run(partial(self._pin, question=question, one=one)))

    async def _price(self) -> tuple[float, float] | None:
        """Gives the US dollars for a token read and one written, None where they aren't known."""
        told = self._settings.usd_per_million_tokens
        if told is not None:
            return told / 1_000_000, told / 1_000_000
        return await asyncio.to_thread(price_of, self._settings.model or "")  # reads a large table once

    def _pin(self, db: sqlite3.Connection, *, question: Question, one: Proposal) -> None:
        """Lets a proposal bind from the session's next request on, in the words of its quote."""
        edit = Edit(
            question.case.link.session, "add", "", one.kind, one.quote, RULE, question.turn.key.hex(), *one.span
        )
        edit_pin(db, self._seal, edit)


def _binds_already(question: Question) -> bool:
    """Whether the turn is pinned as a whole: then a quote of it adds nothing that binds."""
    track = question.case.track
    return track is not None and any(pin.key == question.turn.key and pin.active for pin in track.state.ledger.pins)
