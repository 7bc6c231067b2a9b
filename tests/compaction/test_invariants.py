"""What must hold in a forwarded body, and where one may cut."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.compaction.invariants import CHAT, STRICT_CHAT, OpenRun, PairedCalls, StrictRoles, forbidden, validate
from proxy.errors import InvalidRewrite
from tests.builders import GOAL, SYSTEM, Wire, call, parsed, result, says, step, steps, user
from tests.contract.wire import pairing_faults


def test_a_whole_talk_has_no_faults():
    talk = parsed(SYSTEM, user(GOAL), *steps(1, 2), says("Done."), user("Go on."), *step(3))
    assert all(invariant.faults(talk) == frozenset() for invariant in STRICT_CHAT)


@pytest.mark.parametrize(
    ("messages", "fault"),
    [
        ([user("a"), result("c", "x")], "result 'c' without its call"),
        ([says("", call("c")), user("a")], "call 'c' without its result"),
        ([says("", call("c")), result("c", "x"), result("c", "y")], "result 'c' without its call"),
        ([says("", call("c"), call("d")), result("d", "x"), says("b")], "call 'c' without its result"),
        ([says("", call("c")), user("a"), result("c", "x")], "result 'c' without its call"),
    ],
)
def test_a_call_is_answered_directly_behind_it_and_once(messages: list[Wire], fault: str):
    assert fault in PairedCalls().faults(parsed(*messages))


def test_calls_that_wait_for_their_results_at_the_end_are_no_fault():
    assert PairedCalls().faults(parsed(user("a"), says("", call("c")))) == frozenset()


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from(["step", "two", "user", "says"]), min_size=1, max_size=7))
def test_a_cut_where_all_invariants_allow_it_leaves_every_call_paired(kinds: list[str]):
    talk: list[Wire] = [SYSTEM, user(GOAL)]
    for number, kind in enumerate(kinds):
        pair = [says("", call(f"a{number}"), call(f"b{number}")), result(f"a{number}", "x"), result(f"b{number}", "y")]
        talk += {"step": step(number), "two": pair, "user": [user("Go on.")], "says": [says("Done.")]}[kind]
    messages = parsed(*talk)
    banned = forbidden(CHAT, messages)
    legal = [place for place in range(2, len(messages)) if place not in banned]
    for start, end in combinations([2, *legal], 2):
        kept = [*talk[:start], user("block"), *talk[end:]]
        assert pairing_faults(kept) == []
        validate(CHAT, parsed(*kept), messages)


def test_the_newest_calls_stay_with_their_results():
    messages = parsed(user(GOAL), says("", call("c"), call("d")), result("c", "x"), result("d", "y"))
    assert OpenRun().forbidden(messages) == {2, 3, 4}


def test_a_body_without_anything_to_answer_is_a_fault():
    assert OpenRun().faults(parsed(SYSTEM)) != frozenset()


def test_strict_roles_want_system_text_first_and_no_two_turns_of_one_role():
    strict = StrictRoles()
    assert strict.faults(parsed(SYSTEM, user("a"), user("b"))) == {"two user messages in a row"}
    assert strict.faults(parsed(user("a"), SYSTEM)) == {"system message that isn't the first"}
    assert strict.forbidden(parsed(SYSTEM, user("a"), says("b"), user("c"))) == {0, 1, 3}


def test_what_the_client_itself_sent_wrong_stays_its_own():
    broken = parsed(user("a"), result("c", "x"), says("b"))
    validate(CHAT, broken, broken)
    with pytest.raises(InvalidRewrite, match="result 'd' without its call"):
        validate(CHAT, parsed(user("a"), result("c", "x"), result("d", "y")), broken)
