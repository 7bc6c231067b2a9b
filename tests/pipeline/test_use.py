"""Other rules in a running conversation: what was said keeps its verdict, what is said next is judged anew."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from proxy.pins.rules import load_rules
from proxy.pipeline.pipeline import Pipeline
from proxy.settings.loading import packaged_folder
from tests.builders import GOAL, PROFILES, SYSTEM, call, result, says, user
from tests.contract.world import World

HEADERS = (("authorization", "Bearer k1"),)
STEP = "export the list with semicolons"
LATER = "export the table with semicolons"
RULE = {"name": "separators", "kind": "constraint", "priority": 98, "patterns": ["with semicolons"]}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "data", budget=4_000)
    yield made
    made.close()


def test_new_rules_judge_what_is_said_from_then_on_and_change_no_byte_of_what_was_sent(world: World) -> None:
    talk: list[dict[str, Any]] = [SYSTEM, user(GOAL)]

    def ask(*said: dict[str, Any]) -> dict[str, Any]:
        talk.extend(said)
        body = json.dumps({"model": "demo", "messages": talk, "stream": False}, separators=(",", ":")).encode()
        answer = says("", call(f"call_{len(talk):024}", path="x.py"))
        done = world.send(body, HEADERS, answer)
        talk.append(answer)
        forwarded.append(done.forwarded)
        return done.receipt

    forwarded: list[bytes] = []

    def ran(size: int) -> dict[str, Any]:
        return result(f"call_{len(talk) - 1:024}", "x" * size)

    ask()
    for _ in range(6):
        before = ask(ran(3_000))
    before = ask(ran(100), user(STEP))
    assert before["pins_active"] == 1
    rules = load_rules([packaged_folder() / "pins.yaml"], [RULE])
    cast("Pipeline", world._proxy).use(rules, PROFILES)
    same = ask(ran(100))
    assert same["pins_active"] == 1
    assert forwarded[-1].startswith(forwarded[-2][: forwarded[-2].rindex(b"]")])
    assert ask(ran(100), user(LATER))["pins_active"] == 2
    assert forwarded[-1].startswith(forwarded[-2][: forwarded[-2].rindex(b"]")])
    assert world.problems() == ()
