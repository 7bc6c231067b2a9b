"""The option `assist`: the user's words in the agent's own order to summarise."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.agent import Agent
from tests.contract.world import World


@pytest.mark.parametrize(("assist", "times"), [(True, 2), (False, 1)])
def test_the_order_to_summarise_carries_the_users_words_where_that_is_asked_for(
    tmp_path: Path, assist: bool, times: int
) -> None:
    world = World(tmp_path / "data", budget=20_000, assist=assist)
    try:
        agent = Agent("amber")
        agent.say("goal")
        goal = agent.sentences[0].text
        answer = agent.reads([400])
        world.send(agent.request(), agent.headers(), answer)
        agent.take(answer, [400])
        asked = world.send(
            agent.request(summarise=True), agent.headers(), {"role": "assistant", "content": "done so far"}
        )
        assert asked.receipt["relation"] == "summary"
        assert ("assisted" in asked.flags) is assist
        assert asked.forwarded.decode().count(goal) == times
    finally:
        world.close()
