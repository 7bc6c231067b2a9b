"""Asks the same upstream for the optional summary of a span, with the request's own credentials, never stored."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from proxy.compaction.cut import make_cut
from proxy.compaction.draft import Policy, Tools
from proxy.compaction.insertion import Insertion
from proxy.compaction.plan import draft_of
from proxy.compaction.summary import INSTRUCTION, Summary, SummaryRejected, framed, source_text, validated
from proxy.compaction.view import View
from proxy.dialects.base import Dialect
from proxy.errors import GoalkeeperError
from proxy.exchange import Call, Copy
from proxy.pipeline.case import Track
from proxy.pipeline.routing import Routing
from proxy.redaction import Sealer
from proxy.settings.model import Summarizer as SummarizerSettings
from proxy.tokens import Counter

INTERNAL = ("x-goalkeeper-internal", "summary")
PASSED_ON = frozenset(
    {
        "anthropic-version",
        "api-key",
        "authorization",
        "openai-organization",
        "openai-project",
        "user-agent",
        "x-api-key",
    }
)


class Summarizer:
    """Writes summaries: awaited (inline), or ahead of the next cut (background)."""

    def __init__(
        self, settings: SummarizerSettings, dialect: Dialect, routing: Routing, counter: Counter, seal: Sealer
    ) -> None:
        self._settings = settings
        self._dialect = dialect
        self._routing = routing
        self._counter = counter
        self._mask = seal.mask
        self._tasks: set[asyncio.Task[None]] = set()

    async def summary(self, call: Call, view: View, cut: Insertion, policy: Policy) -> Summary:
        """Gives a validated summary of the messages that a cut takes out. Raises GoalkeeperError."""
        leaving = [view.messages[index] for index in range(view.place(cut.start), view.place(cut.end))]
        room = int(policy.budget.hard / max(policy.ratio, 0.01) * 0.8) - self._settings.max_tokens
        source = source_text(leaving, self._counter.text, max(room, 500) if policy.budget.hard else 0, self._mask)
        model = self._settings.model or view.transcript.model
        asked = self._dialect.question(model, INSTRUCTION, framed(source), self._settings.max_tokens)
        answered = await self._ask(call, model, asked)
        answer = self._dialect.answer(answered, sse=False)
        text = validated(answer, source, self._counter.text(source), self._counter.text)
        return Summary(text, cut.start, cut.end, model, answer.prompt_tokens + answer.completion_tokens)

    async def _ask(self, call: Call, model: str, body: bytes) -> bytes:
        headers = [(name, value) for name, value in call.headers if name.lower() in PASSED_ON]
        headers += [("Content-Type", "application/json"), ("Accept", "application/json")]
        try:
            async with asyncio.timeout(self._settings.timeout_seconds):
                reply = await self._routing.sender(model, self._dialect.path).send(
                    "POST", self._dialect.path, headers, body, identity=True, own=(INTERNAL,)
                )
                try:
                    copy = Copy()
                    copy.add(await reply.read())
                finally:
                    reply.close()
        except TimeoutError as error:
            raise SummaryRejected(f"no summary within {self._settings.timeout_seconds:g} s") from error
        if reply.status != 200:
            raise SummaryRejected(f"the summariser answered with status {reply.status}")
        return copy.text(reply.header("content-encoding"))

    def prepare(self, call: Call, branch: str, track: Track, policy: Policy, tools: Tools) -> None:
        """Starts a summary of what the next cut will take out, unless one waits or is being written."""
        state, view = track.state, track.view
        if state.summarizing or state.memory.summary is not None:
            return
        cut = make_cut(draft_of(view, branch, state.memory, policy, tools))
        if cut is None:
            return
        state.summarizing = True
        task = asyncio.create_task(self._prepared(call, track, cut.fresh[-1], policy))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _prepared(self, call: Call, track: Track, cut: Insertion, policy: Policy) -> None:
        state = track.state
        try:
            summary = await self.summary(call, track.view, cut, policy)
            state.memory = replace(state.memory, summary=summary)
        except GoalkeeperError:
            return  # the digest stands; the next request near the cut tries again
        finally:
            state.summarizing = False
