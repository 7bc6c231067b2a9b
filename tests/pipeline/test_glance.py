"""Requests that need nothing: which are known at a glance, and that nothing of them is lost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from proxy.dialects.chat import Chat
from proxy.exchange import Call
from proxy.pipeline.pipeline import Pipeline
from proxy.transcript import Part
from tests.builders import PROFILES, RULES
from tests.contract.agent import Agent
from tests.contract.world import World

FAR = 0.0  # no limit at all


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "data")
    yield made
    made.close()


def step(world: World, agent: Agent, **more: str) -> dict[str, Any]:
    """Sends a request; the agent takes the answer, and runs the one tool that it asks for."""
    answer = agent.reads([400])
    done = world.send(agent.request(), agent.headers(**more), answer)
    agent.take(answer, [400])
    return done.receipt


def begun(world: World, name: str = "amber", client: str = "") -> Agent:
    agent = Agent(name, client)
    agent.say("goal")
    step(world, agent)
    step(world, agent)
    return agent


def glanced(world: World, agent: Agent, limit: float = FAR, **more: str) -> bool:
    """Whether the agent's next request would go out at a glance."""
    pipeline = cast("Pipeline", world._proxy)
    call = Call("POST", "/v1/chat/completions", agent.headers(**more), agent.request())
    transcript = pipeline._dialect.parse(call.body)
    return pipeline._glance.find(call, transcript, limit) is not None


def test_a_request_that_brings_only_what_model_and_tools_said_is_known_at_a_glance(world: World) -> None:
    agent = begun(world)
    assert glanced(world, agent)


def test_what_it_brings_is_stored_with_receipt_calls_and_pins_all_the_same(world: World) -> None:
    agent = begun(world)
    assert glanced(world, agent)
    receipt = step(world, agent)
    assert (receipt["relation"], receipt["pins_present"], receipt["pins_active"]) == ("extends", 1, 1)
    assert [call["origin"] for call in receipt["calls"]] == ["request", "answer"]
    digests = [message.digest for message in Chat().parse(agent.request()).messages[:-2]]
    assert set(world.archived(digests)) == set(digests)
    assert world.problems() == ()


def test_words_of_a_person_are_never_left_to_a_glance(world: World) -> None:
    agent = begun(world)
    agent.say("correction")
    assert not glanced(world, agent)


def test_words_of_a_person_in_a_tool_result_are_never_left_to_a_glance(world: World) -> None:
    agent = begun(world)
    agent.body[-2]["tool_calls"][0]["function"]["name"] = "ask_user"
    agent.body[-1]["content"] = "Use tabs, not spaces."
    assert not glanced(world, agent)


@pytest.mark.parametrize("change", [{"model": "other"}, {"tools": []}, {"max_tokens": 5}, {"truncation": "auto"}])
def test_another_body_around_the_same_messages_is_looked_at(world: World, change: dict[str, Any]) -> None:
    agent = begun(world)
    call = Call("POST", "/", agent.headers(), json.dumps(json.loads(agent.request()) | change).encode())
    pipeline = cast("Pipeline", world._proxy)
    assert pipeline._glance.find(call, Chat().parse(call.body), FAR) is None


@pytest.mark.parametrize("header", ["x-goalkeeper-bypass", "x-goalkeeper-budget", "x-session-id"])
def test_another_header_is_looked_at(world: World, header: str) -> None:
    assert not glanced(world, begun(world), **{header: "1"})


def test_a_body_that_may_be_near_its_limit_is_looked_at(world: World) -> None:
    agent = begun(world)
    size = len(agent.request())
    assert glanced(world, agent, limit=size)
    assert not glanced(world, agent, limit=size / 2)  # in bytes: nothing is counted yet


def test_a_pin_that_a_person_changed_meanwhile_is_looked_at(world: World) -> None:
    agent = begun(world)
    world._store.edits.change()
    assert not glanced(world, agent)


def test_two_sessions_that_say_the_same_are_looked_at(world: World) -> None:
    agent = begun(world, client="ses-1")
    twin = Agent("amber", "ses-2", body=list(agent.body[:-2]), said=list(agent.said[:-2]))
    step(world, twin)
    assert not glanced(world, agent)


def test_a_body_from_which_something_is_gone_is_looked_at(world: World) -> None:
    agent = begun(world)
    step(world, agent)
    del agent.body[2:4]
    assert not glanced(world, agent)


def test_an_item_that_only_the_provider_can_read_is_looked_at(world: World) -> None:
    agent = begun(world)
    pipeline = cast("Pipeline", world._proxy)
    call = Call("POST", "/", agent.headers(), agent.request())
    transcript = Chat().parse(call.body)
    sealed = replace(transcript.messages[-1], parts=(Part("opaque", "c2VhbGVk", name="compaction"),))
    changed = replace(transcript, messages=(*transcript.messages[:-1], sealed))
    assert pipeline._glance.find(call, changed, FAR) is None


def test_after_a_change_of_rules_or_profiles_every_request_is_looked_at(world: World) -> None:
    agent = begun(world)
    cast("Pipeline", world._proxy).use(RULES, PROFILES)
    assert not glanced(world, agent)


def test_what_is_sent_again_is_known_also_where_another_branch_went_on_from_it(world: World) -> None:
    agent = begun(world)
    step(world, agent)
    again, headers, answer = agent.request(), agent.headers(), agent.reads([400])
    world.send(again, headers, answer)
    agent.take(answer, [400])
    step(world, agent)  # the branch goes on: what is sent now is taken back, and gets one of its own
    assert world.send(again, headers, answer).receipt["relation"] == "rewound"
    done = world.send(again, headers, answer)
    assert (done.receipt["relation"], done.forwarded) == ("resend", again)
    pipeline = cast("Pipeline", world._proxy)
    call = Call("POST", "/v1/chat/completions", headers, again)
    quiet = pipeline._glance.find(call, pipeline._dialect.parse(again), FAR)
    assert quiet is not None
    assert quiet.case.link.branch == done.receipt["track"]
    assert not glanced(world, agent)  # the other one can go on as well
