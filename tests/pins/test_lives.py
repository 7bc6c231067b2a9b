"""Which older words newer ones make wrong, in short sessions of several languages, and what stands in a block then."""

from pathlib import Path

import pytest
import yaml

from proxy.pins.model import Status
from tests.pins.build import said

LIVES = yaml.safe_load((Path(__file__).parent / "lives.yaml").read_text(encoding="utf-8"))


def gone(*texts: str) -> list[int]:
    fell = (Status.SUPERSEDED, Status.RETRACTED)
    return sorted(pin.turn - 1 for pin in said(*texts).pins if pin.fallen or pin.status in fell)


@pytest.mark.parametrize(("texts", "wanted"), LIVES["replaced"], ids=[one[0][-1] for one in LIVES["replaced"]])
def test_newer_words_replace_what_they_make_wrong(texts, wanted):
    assert gone(*texts) == wanted


@pytest.mark.parametrize(("texts", "wanted"), LIVES["standing"], ids=[one[0][-1] for one in LIVES["standing"]])
def test_words_that_only_look_alike_leave_each_other_standing(texts, wanted):
    assert gone(*texts) == wanted


def test_a_lifted_hold_inside_a_goal_falls_and_the_goal_stays():
    ledger = said("Refactor the parser. No code yet, show me the plan. Keep the API.", "go ahead")
    goal = ledger.goal
    assert goal.active
    assert goal.fallen == "No code yet, show me the plan."


def test_a_bare_continue_lifts_no_hold():
    assert not said("Refactor the parser. No code yet, show me the plan.", "continue").goal.fallen


def test_a_hold_that_is_repeated_isnt_lifted_by_its_own_words():
    assert gone("Fix it.", "no code yet", "don't start coding before I say go ahead") == []


def test_an_approval_is_history_and_binds_nothing_later():
    ledger = said("Set up the box.", "only staging for now", ("yes, delete the old volume", "Shall I delete it?"))
    assert [pin.text for pin in ledger.active] == ["Set up the box.", "only staging for now"]
    assert ledger.history[-1].label == "approval"
