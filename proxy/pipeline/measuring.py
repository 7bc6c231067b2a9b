"""Tokens of a branch's messages: counted once ever, and only guessed while even bytes are below the limit."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from proxy.pipeline.case import BranchState, Case, Scope, Track
from proxy.store.sqlite import Store
from proxy.tokens import Counter
from proxy.transcript import Transcript

_MANY = 8  # unknown messages from which on a look into the store pays
_HEAVY_BYTES = 64 << 10  # from so much new text on, counting happens in a thread


class Measure:
    """Measures transcripts against limits."""

    def __init__(self, counter: Counter, store: Store) -> None:
        self._counter = counter
        self._store = store

    async def counted(self, case: Case) -> Case:
        """Gives the case with all its tokens counted, not guessed."""
        track = case.track
        if track is None or case.exact or not self._counter.ready:
            return case
        places = len(case.transcript.messages)
        tokens = await self.measured(case.transcript, case.scope, track.state, places, 1.0)
        return replace(case, track=Track(track.state, replace(track.view, tokens=tokens)), exact=True)

    async def weighed(self, case: Case) -> int:
        """Counts a whole body that was only guessed, in a thread; 0 without a vocabulary."""
        if case.track is None or not self._counter.ready:
            return 0
        messages, count = case.transcript.messages, self._counter.message
        return case.track.view.overhead + sum(await asyncio.to_thread(lambda: [count(one) for one in messages]))

    async def measured(
        self, transcript: Transcript, scope: Scope, state: BranchState, new_from: int, limit: float
    ) -> tuple[int, ...]:
        """Gives the tokens of each message, counted once ever; guessed while even bytes are below the limit."""
        counter, messages = self._counter, transcript.messages
        counted = min(state.counted, new_from)
        if not counter.ready or not limit or state.at_most(messages, counted) < limit:
            return self.guessed(transcript, state, new_from)
        known, rest = state.tokens[:counted], messages[counted:]
        new = counter.unknown(rest)
        if len(new) > _MANY:
            counter.learn(self._store.tokens_of(scope.tenant, [message.digest for message in new]))
            new = counter.unknown(tuple(new))
        if sum(len(message.raw) for message in new) > _HEAVY_BYTES:
            await asyncio.to_thread(lambda: [counter.message(message) for message in new])
        state.counted, state.tokens = len(messages), known + tuple([counter.message(message) for message in rest])
        return state.tokens

    def guessed(self, transcript: Transcript, state: BranchState, new_from: int) -> tuple[int, ...]:
        """Gives a guess for each message that is new, and what is known of the others."""
        guessed = tuple([self._counter.guess(message) for message in transcript.messages[new_from:]])
        state.counted, state.tokens = min(state.counted, new_from), state.tokens[:new_from] + guessed
        return state.tokens
