"""Recall: what was promoted in a project is told to its new sessions, through a real pipeline and store."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from proxy.facts import Fact
from proxy.redaction import Sealer
from proxy.store.fact_edits import changing
from proxy.store.schema import attach
from tests.builders import SYSTEM, body, says, step, user
from tests.contract import wire
from tests.contract.world import Done, World
from tests.running import KEY

RULE = "Money is kept as decimal strings, never as floats."
ANSWER = says("Fine, I begin with the ledger module and its tests.")


@pytest.fixture
def world(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[World]:
    settings: dict[str, Any] = {"budget": 3_000, "tenant": "none", "facts": {"recall": True}}
    made = World(tmp_path / "data", **settings | getattr(request, "param", {}))
    yield made
    made.close()


def know(world: World, text: str, **fields: Any) -> str:
    """Adds a promoted fact of the project shop, by hand."""
    known: dict[str, Any] = {
        "pin": "", "kind": "decision", "status": "active", "scope": "project", "quote": "", "turn": 0,
        "rule": "by hand", "project": "shop", "session": "", "branch": "",
        "observed_at": "2026-03-04T10:00:00Z", "source": {},
        "promoted": "2026-03-05T10:00:00Z", "tenant": "-",
    }  # fmt: skip
    values = known | fields
    tenant = values.pop("tenant")
    db = attach(world.folder)
    with changing(db, Sealer(KEY)) as desk:
        fact = desk.add(tenant, Fact(text=text, **values))
    db.close()
    return fact.id


def ask(
    world: World, *messages: Any, project: str = "shop", session: str = "", client: str = "", answer: Any = ANSWER
) -> Done:
    names = {"x-goalkeeper-project": project, "x-goalkeeper-session": session, "x-session-id": client}
    headers = tuple((name, value) for name, value in names.items() if value)
    return world.send(body(SYSTEM, *messages, stream=False), headers, answer)


def test_a_new_session_is_told_what_was_promoted_before_the_users_first_words_and_keeps_it_word_for_word(world):
    known = know(world, RULE)
    first = ask(world, user("Port the ledger to Go."))
    told = wire.messages(first.forwarded)
    assert [message["role"] for message in told] == ["system", "user", "user"]
    assert f'- 2026-03-04, decision, fact {known}: "{RULE}"' in told[1]["content"]
    assert "not words of the user in this conversation" in told[1]["content"]
    assert told[2] == user("Port the ledger to Go.")
    assert "recalled" in first.flags
    know(world, "Tests run in Docker.")  # later knowledge is for later sessions
    world.restart()
    second = ask(world, user("Port the ledger to Go."), ANSWER, user("Go on."))
    assert second.receipt["session"] == first.receipt["session"]
    assert wire.raw_messages(second.forwarded)[:3] == wire.raw_messages(first.forwarded)
    assert world.problems() == ()


def test_it_stays_through_compactions_of_ours_and_of_the_agents(world):
    know(world, RULE)
    talk = [user("Port the ledger to Go.")]
    for number in range(12):
        call, result = step(number, size=1600)
        done = ask(world, *talk, client="one", answer=call)
        talk += [call, result]
    assert "[goalkeeper 2/2" in done.forwarded.decode()
    told = wire.messages(done.forwarded)[1]
    assert told["content"].startswith("[goalkeeper: knowledge")
    done = ask(world, user("Summary of the session so far: twelve modules were read."), user("Go on."), client="one")
    assert done.receipt["relation"] == "compacted"
    assert told in wire.messages(done.forwarded)
    assert world.problems() == ()


def test_only_promoted_facts_of_the_same_project_and_tenant_that_hold_are_told(world):
    for fields in ({"promoted": ""}, {"status": "retracted"}, {"project": "blog"}, {"tenant": "another"}):
        know(world, RULE, **fields)
    know(world, "Finish the port.", kind="goal")
    done = ask(world, user("Port the ledger to Go."))
    assert done.forwarded == done.body


def test_a_session_that_began_elsewhere_and_one_without_a_project_are_left_alone(world):
    know(world, RULE, project="")
    know(world, RULE)
    assert ask(world, user("Port it."), project="").receipt["changed"] is False
    assert ask(world, user("Port it."), ANSWER, user("Go on.")).receipt["changed"] is False


@pytest.mark.parametrize("world", [{"facts": {"recall": False}}], indirect=True)
def test_nothing_is_told_unless_it_is_switched_on(world):
    know(world, RULE)
    assert ask(world, user("Port the ledger to Go.")).receipt["changed"] is False


@pytest.mark.parametrize("world", [{"facts": {"recall": True, "recall_tokens": 140}}], indirect=True)
def test_rules_and_decisions_come_first_when_there_is_no_room_for_all(world):
    for number in range(20):
        know(world, f"The module {number} was looked at and found to be in good order by all of us.", kind="fact")
    know(world, RULE, kind="constraint")
    told = wire.messages(ask(world, user("Port the ledger to Go.")).forwarded)[1]["content"]
    assert RULE in told
    assert "module 0" not in told


@pytest.mark.parametrize(("world", "told"), [({}, False), ({"facts": {"recall": True, "scope": "project"}}, True)],
                         indirect=["world"])  # fmt: skip
def test_words_said_under_another_session_name_are_told_with_scope_project_only(world, told):
    done = ask(world, user("Port the ledger to Go."), session="a")
    fact = next(iter(json.loads(text) for (text,) in attach(world.folder).execute("SELECT record FROM facts")))
    db = attach(world.folder)
    with changing(db, Sealer(KEY)) as desk:
        desk.change(desk.fact(fact["id"]), {"kind": "decision", "promoted": "2026-01-01"}, "promoted")
    db.close()
    assert done.receipt["changed"] is False
    again = ask(world, user("Write the docs."), session="b")
    assert again.receipt["changed"] is told
    assert ask(world, user("Write more docs."), session="a").receipt["changed"] is True
