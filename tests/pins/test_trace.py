from proxy.pins.trace import trace
from tests.pins.build import rules, turn


def steps(*texts):
    return list(trace([turn(number, text) for number, text in enumerate(texts, 1)], rules()))


def test_a_judged_turn_tells_the_rule_its_words_and_what_came_second():
    step = steps("Build it.", "No, only touch the parser.")[1]
    assert (step.reason.rule, step.second.rule) == ("correction", "limit")
    assert step.reason.words.startswith("No, only")


def test_what_structure_decides_has_no_rule():
    step = steps("Build it.")[0]
    assert (step.verdict.rule, step.reason) == ("first turn", None)


def test_a_replaced_turn_is_told_with_its_words():
    change = steps("Build it.", "use port 8080", "no, 9090, not 8080")[2].changes[0]
    assert (change.turn, change.status, change.text, change.replaced) == (2, "superseded", "use port 8080", True)


def test_a_finished_goal_is_a_change_but_nothing_was_replaced():
    change = steps("Build it.", "that is done")[1].changes[0]
    assert (change.status, change.replaced) == ("closed", False)


def test_a_turn_made_of_phrases_is_its_own_reason():
    assert steps("Build it.", "looks good, go on")[1].reason.words == "looks good, go on"
