"""Plays the whole session: stand-in, proxy and agent together."""

from __future__ import annotations

import asyncio
from itertools import chain

import aiohttp

from proxy.demo import script
from proxy.demo.agent import Agent
from proxy.demo.child import Goalkeeper
from proxy.demo.model import StandIn, listening
from proxy.demo.outcome import Outcome, measure
from proxy.tokens import Counter

_WHOLE_SECONDS = 120.0


async def play(goalkeeper: Goalkeeper, budget: int) -> Outcome:
    """Plays the story through a proxy process and measures what came out. Raises GoalkeeperError."""
    parts = list(script.parts())
    counter = Counter()
    stand_in = StandIn(chain.from_iterable(replies for _, replies in parts), counter)
    async with asyncio.timeout(_WHOLE_SECONDS), listening(stand_in) as upstream:
        loading = asyncio.create_task(asyncio.to_thread(counter.load))
        async with goalkeeper.serving(upstream) as url, aiohttp.ClientSession() as http:
            await loading
            agent = Agent(http, url, budget, stand_in.reader_saw.set)
            for words, _ in parts:
                if words.module == script.AGENT_COMPACTS_BEFORE:
                    await agent.compact()
                await agent.work(words.text)
    return measure(agent.exchanges, stand_in, counter, budget)
