"""When the upstream refuses a body that we made: what goes out instead, and what is remembered of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract import wire
from tests.contract.agent import Agent
from tests.contract.world import Done, World

BUDGET = 4_000


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "data", budget=BUDGET)
    yield made
    made.close()


def works(world: World, agent: Agent, steps: int, size: int = 3_000) -> list[Done]:
    """Lets an agent do so many steps of one call each."""
    done = []
    for _ in range(steps):
        answer = agent.reads([size])
        done.append(world.send(agent.request(), agent.headers(), answer))
        if done[-1].sink.status == 200:
            agent.take(answer, [size])
    return done


def begun() -> Agent:
    agent = Agent("amber")
    agent.say("goal")
    return agent


def test_a_refused_cut_is_left_out_and_the_clients_words_still_arrive(world: World) -> None:
    agent = begun()
    first = next(done for done in works(world, agent, 5) if not done.receipt["changed"])
    assert first.sink.status == 200
    world.refusals = 1
    refused = next(done for done in works(world, agent, 8) if len(done.bodies) == 2)
    assert refused.sink.status == 200
    assert refused.receipt["attempts"] == 2
    assert "plan_refused" in refused.flags
    assert refused.forwarded == refused.body


def test_a_refused_second_cut_leaves_the_first_one_in_its_place(world: World) -> None:
    agent = begun()
    cut = next(done for done in works(world, agent, 16) if done.receipt["compaction"])
    world.refusals = 1
    later = works(world, agent, 16)
    refused = next(done for done in later if len(done.bodies) == 2)
    block = wire.raw_messages(cut.forwarded)[2]
    assert block in wire.raw_messages(refused.forwarded)
    assert not any(done.flags & {"invalid_rewrite", "failed_open"} for done in later)
    assert [done.sink.status for done in later] == [200] * len(later)
    assert world.size_of(later[-1].forwarded) <= BUDGET


def test_that_roles_have_to_alternate_is_still_known_after_a_restart(world: World) -> None:
    agent = begun()
    works(world, agent, 5)
    world.refusals = 1
    refused = works(world, agent, 6)
    assert [done.receipt["attempts"] for done in refused].count(2) == 1
    world.restart()
    cut = next(done for done in works(world, agent, 6) if done.receipt["compaction"])
    roles = [message["role"] for message in wire.messages(cut.forwarded)]
    assert roles == ["system", "user", *["assistant", "tool"] * (len(roles) // 2 - 1)]
