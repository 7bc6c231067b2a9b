"""The budget is in the model's own tokens, which nobody knows before it has told some."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.agent import Agent
from tests.contract.world import World

BUDGET = 4_000
FACTOR = 1.2  # the model's tokens for one of ours


@pytest.mark.parametrize("size", range(4_600, 6_000, 200))
def test_what_was_told_of_a_guessed_beginning_counts_when_a_talk_jumps_to_its_budget(tmp_path: Path, size: int):
    world, agent = World(tmp_path / "data", budget=BUDGET, factor=FACTOR), Agent("amber")
    agent.say("goal")
    done = []
    for sizes in ([2_800], [size, size], [40]):
        answer = agent.reads(sizes)
        done.append(world.send(agent.request(), agent.headers(), answer))
        agent.take(answer, sizes)
    world.close()
    assert world.size_of(done[1].body) < BUDGET / 3  # its bytes suffice to say that it fits
    assert world.size_of(done[2].body) > BUDGET
    assert world.size_of(done[2].forwarded) <= BUDGET
