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


def test_an_exception_for_once_ends_with_the_next_order():
    ledger = said("Port it.", "skip the linter just this once", "now add the footer")
    assert (ledger.pins[1].scope, ledger.pins[1].status) == ("once", Status.EXPIRED)
    assert said("Port it.", "skip the linter just this once", "ok").pins[1].active


@pytest.mark.parametrize(
    "text", ["in this repo we never push to main", "in diesem Projekt immer Tabs", "这个项目一律用中文注释"]
)
def test_a_rule_of_the_project_outlives_the_session(text):
    assert said("Port it.", text).pins[1].scope == "project"


def test_a_long_turn_is_no_passing_talk_whatever_words_are_in_it():
    long = "The importer reads the file and writes rows. " * 14 + "It crashes on empty lines."
    assert said("Port it.", long).pins[1].active


def test_a_list_of_points_is_kept_whatever_words_are_in_it():
    points = "three things:\n- error page in german\n- empty lists show a picture\n- nothing is slow"
    assert said("Port it.", points).pins[1].text == points
