"""Talks in which the state machine found a fault once, told again step by step."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract import test_machine
from tests.contract.test_machine import Contract

FOUND: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "a block that is told anew over the same turns gets an id of its own": [
        ("start", {"ids": False, "strong": False, "stream": False, "factor": 1, "reports": False, "when": "never"}),
        ("works", {"who": 1, "steps": [[300], [], []]}),
        ("says", {"who": 3, "kind": "question", "sizes": [40]}),
        ("says", {"who": 3, "kind": "constraint", "sizes": [40, 300]}),
        ("says", {"who": 3, "kind": "changed", "sizes": [300]}),
        ("shrinks", {}),
        ("says", {"who": 3, "kind": "changed", "sizes": [300, 3000, 5000]}),
        ("retries", {"who": 3, "marked": True}),
        ("says", {"who": 1, "kind": "changed", "sizes": [300]}),
        ("forks", {"who": 1, "sizes": [1200, 300, 5000]}),
    ],
    "what was told of a guessed beginning counts when the talk jumps to its budget": [
        ("start", {"ids": True, "strong": False, "stream": False, "factor": 1.2, "reports": True, "when": "inline"}),
        ("works", {"who": 1, "steps": [[1200, 300, 40]]}),
        ("forks", {"who": 1, "sizes": []}),
        ("forks", {"who": 1, "sizes": [5000, 5000]}),
        ("retries", {"who": 3, "marked": True}),
    ],
    "it counts as well where words were put back into that beginning": [
        ("start", {"ids": False, "strong": True, "stream": False, "factor": 1.2, "reports": True, "when": "never"}),
        ("says", {"who": 3, "kind": "preference", "sizes": [300]}),
        ("compacts", {"who": 3, "tail": 2, "sizes": []}),
        ("slides", {"who": 3, "keep": 2, "goal": True, "sizes": [3000, 3000, 5000]}),
        ("says", {"who": 3, "kind": "changed", "sizes": [40, 1200]}),
    ],
}


@pytest.mark.parametrize("steps", FOUND.values(), ids=FOUND)
def test_a_talk_in_which_a_fault_was_found_keeps_the_contract(
    steps: list[tuple[str, dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(test_machine, "event", lambda _: None)  # hypothesis takes them only inside a run of its own
    talk = Contract()
    for name, how in steps:
        getattr(talk, name)(**how)
        talk.sane()
    assert talk.world.problems() == ()
    talk.teardown()  # what else holds at the end
