from proxy.pins.lifecycle import Edit, add, amend, fold
from proxy.pins.model import Ledger, Status
from proxy.pins.rules import load_rules
from proxy.settings.loading import packaged_folder
from tests.pins.build import rules, said, turn


def texts(ledger):
    return [pin.text for pin in ledger.active]


def test_a_new_task_after_a_finished_one_closes_the_old_goal():
    ledger = said("Delete the legacy cron scripts.", "Thanks, that is done. New task: write a README.", "continue")
    old, new = ledger.pins
    assert (old.status, old.superseded_by, new.status) == (Status.CLOSED, new.id, Status.ACTIVE)
    assert ledger.goal == new


def test_a_replaced_goal_is_superseded():
    ledger = said("Rank five countries by tax.", "forget the ranking. Just go deep on Spain and Croatia")
    assert ledger.pins[0].status is Status.SUPERSEDED
    assert ledger.goal == ledger.pins[1]


def test_an_added_goal_leaves_the_first_one_standing():
    ledger = said("Split the worker.", "ok and after that document the whole split in docs/worker.md")
    assert [pin.kind for pin in ledger.active] == ["goal", "goal"]


def test_a_finished_goal_makes_room_for_the_next_words():
    ledger = said("Refactor the login.", "that is done", "write docs for the API")
    first, second = ledger.pins
    assert (first.status, first.superseded_by, ledger.goal) == (Status.CLOSED, second.id, second)


def test_a_changed_rule_inside_a_goal_falls_and_the_goal_stays():
    rule = "Use tabs for indentation."
    ledger = said(f"Format the SQL files. {rule}", "Actually change that: two blanks per level, tabs were a mistake.")
    goal, correction = ledger.pins
    assert (goal.status, goal.fallen, goal.superseded_by) == (Status.ACTIVE, rule, correction.id)


def test_a_changed_value_supersedes_the_pin_that_held_it():
    ledger = said("Build a trash bin.", "purge after 30 days", "legal says 90, not 30")
    assert [pin.status for pin in ledger.pins[1:]] == [Status.SUPERSEDED, Status.ACTIVE]
    assert ledger.pins[1].superseded_by == ledger.pins[2].id


def test_a_changed_value_supersedes_in_other_languages_too():
    for texts_ in (
        ("Baue das Portal.", "Standard 18 €", "Standard doch 20 €"),
        ("做积分商城", "1元=10积分", "比例改成1元1积分"),
    ):
        assert said(*texts_).pins[1].status is Status.SUPERSEDED


def test_a_repeated_ban_replaces_nothing():
    ledger = said("Port it.", "never use redis, use sqlite", "sqlite, not redis")
    assert all(pin.active for pin in ledger.pins)


def test_a_correction_of_the_agent_alone_leaves_older_pins_standing():
    preference = "By the way, I prefer tabs over spaces, ref PREF-11c."
    ledger = said("Port it.", preference, "Actually, stop renaming the helpers; revert it (ref COR-58b).")
    assert all(pin.active and not pin.fallen for pin in ledger.pins)


def test_the_same_words_again_are_the_same_pin():
    once, twice = said("Port it.", "never touch main"), said("Port it.", "never touch main", "Never touch  main")
    assert twice.pins == once.pins


def test_the_same_words_after_their_retraction_are_a_new_pin():
    ledger = said("Port it.", "never touch main", "!unpin touch main", "never touch main")
    assert [pin.status for pin in ledger.pins[1:]] == [Status.RETRACTED, Status.ACTIVE]
    assert ledger.pins[1].id != ledger.pins[2].id


def test_forget_it_withdraws_what_was_said_last():
    ledger = said("Plan a trip.", "only night trains", "forget it")
    assert texts(ledger) == ["Plan a trip."]
    assert ledger.history[-1].label == "retract"


def test_never_mind_after_a_question_of_the_assistant_withdraws_nothing():
    ledger = said("Plan a trip.", "only night trains", ("never mind", "Should I look at ferries too?"))
    assert texts(ledger) == ["Plan a trip.", "only night trains"]


def test_unpin_takes_a_turn_number_an_id_or_words():
    ledger = said("Plan a trip.", "only night trains", "max 90 euros")
    for name in ("2", "turn 2", ledger.pins[1].id, "night"):
        after = add(ledger, turn(9, f"!unpin {name}"), rules())
        assert texts(after) == ["Plan a trip.", "max 90 euros"]


def test_a_one_off_order_expires_with_the_next_order():
    inline = [{"name": "once", "kind": "constraint", "scope": "once", "priority": 99, "patterns": ["this time"]}]
    own = load_rules([packaged_folder() / "pins.yaml"], inline)
    turns = [turn(1, "Port it."), turn(2, "skip the linter this time"), turn(3, "ok")]
    assert fold(turns, own).pins[1].active
    assert fold([*turns, turn(4, "run the tests")], own).pins[1].status is Status.EXPIRED


def test_an_option_letter_keeps_its_question():
    ledger = said("Store the rows.", ("B", "Which one? A) sqlite B) postgres"))
    assert (ledger.pins[1].text, ledger.pins[1].asked) == ("B", "Which one? A) sqlite B) postgres")


def test_edits_by_people_come_after_the_fold():
    ledger = said("Plan a trip.", "only night trains")
    edits = [Edit("retract", pin=ledger.pins[1].id), Edit("add", text="no ferries"), Edit("add", text="no ferries")]
    after = amend(ledger, edits)
    assert texts(after) == ["Plan a trip.", "no ferries", "no ferries"]
    assert len({pin.id for pin in after.pins}) == 4
    assert fold([], rules(), [Edit("add", text="no ferries", kind="goal")]).goal.rule == "by hand"


def test_adding_turn_by_turn_gives_what_folding_gives():
    turns = [turn(1, "Port it."), turn(2, "No, keep the API."), turn(3, "ok"), turn(4, "use 4 spaces")]
    ledger = Ledger()
    for one in turns:
        before = ledger
        ledger = add(ledger, one, rules())
        assert before.pins == ledger.pins[: len(before.pins)]
    assert ledger == fold(turns, rules())


def test_every_turn_lands_in_pins_or_history():
    spoken = ["Port it.", "ok", "No, keep the API.", "why?", "run the tests", "still broken", "thanks"]
    ledger = said(*spoken)
    assert sorted([pin.text for pin in ledger.pins] + [one.text for one in ledger.history]) == sorted(spoken)
