"""What the agents were seen to send, played against the real pipelines: no agent is needed for it."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from agents import wire
from agents.checks import faults
from tests.agents.session import SPOKEN, Session
from tests.agents.shapes import (
    aider,
    claude_code,
    cline,
    cn,
    codex,
    gptme,
    libraries,
    mini_swe_agent,
    opencode,
    openhands,
    pi,
    qwen_code,
    smolagents,
)
from tests.agents.stage import Outcome, play

PROGRAMS = (opencode, pi, qwen_code, cn, cline, codex, claude_code, aider, gptme, mini_swe_agent)
MODULES = (*PROGRAMS, openhands, smolagents, libraries)
SESSIONS = [
    pytest.param(session, id=f"{module.__name__.rpartition('.')[2]}-{number}")
    for module in MODULES
    for number, session in enumerate(module.sessions())
]
pytestmark = pytest.mark.parametrize("session", SESSIONS)


PLAYED: dict[int, Outcome] = {}  # each session is played once; the tests only look at what came of it


@pytest.fixture
def outcome(session: Session, tmp_path) -> Outcome:
    if id(session) not in PLAYED:
        PLAYED[id(session)] = play(session.requests, tmp_path)
    return PLAYED[id(session)]


def places(body: wire.Body) -> list[str]:
    return [*wire.users(body), *wire.results(body)]


def test_the_agent_is_recognised(session, outcome):
    assert {one.receipt["client"] for one in outcome.played if one.receipt["client"]} == {session.name}


def test_what_the_user_said_is_in_every_request_of_the_conversation_word_for_word(outcome):
    for number, one in enumerate(outcome.played):
        if one.request.kind == "main":
            texts = places(json.loads(one.forwarded))
            missing = [words for words in one.request.said if not any(words in text for text in texts)]
            assert missing == [], (number, one.receipt)


def test_side_calls_and_sub_agents_go_out_as_they_came(outcome):
    changed = [
        n for n, one in enumerate(outcome.played) if one.request.kind != "main" and one.forwarded != one.request.body
    ]
    assert changed == []


def test_nothing_but_the_users_words_becomes_a_fact(outcome):
    assert set(outcome.facts) <= set(SPOKEN)
    assert len(outcome.facts) == len(set(outcome.facts)), "the same words were taken for new ones"


def test_every_forwarded_body_is_valid(session, outcome):
    for one in outcome.played:
        if one.request.path != "/v1/responses/compact":
            assert faults(session.api, json.loads(one.forwarded)) == [], one.receipt
    assert {one.status for one in outcome.played} == {200}


def test_between_two_compactions_a_body_only_grows(outcome):
    main = [one for one in outcome.played if one.request.kind == "main"]
    for before, after in pairwise(main):
        old, new = (wire.items(json.loads(one.request.body)) for one in (before, after))
        if new[: len(old)] == old:
            sent, grown = (wire.items(json.loads(one.forwarded)) for one in (before, after))
            assert grown[: len(sent)] == sent, after.receipt
