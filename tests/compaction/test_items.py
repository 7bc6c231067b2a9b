"""Compaction and restore where an answer is several items: reasoning, calls, and what a server compacted."""

from __future__ import annotations

import pytest

from proxy.compaction.invariants import forbidden, validate
from proxy.compaction.item_invariants import RESPONSES, STRICT_RESPONSES, ReasoningWithItem, sealed_until
from proxy.compaction.repair import repaired
from proxy.errors import InvalidRewrite
from tests.builders import after, policy
from tests.items import (
    DEVELOPER,
    GOAL,
    RULE,
    Talk,
    call,
    compaction,
    environment,
    output,
    parsed,
    plan,
    says,
    sent,
    steps,
    texts,
    thought,
    user,
)
from tests.items import RESPONSES as DIALECT

SUMMARY = user("Another language model started to solve this problem and produced a summary of it:\nHalf is done.")


def cuts(*items):
    """The places where a cut may lie."""
    messages = parsed(*items)
    return [place for place in range(len(messages) + 1) if place not in forbidden(RESPONSES, messages)]


def valid(ours, clients):
    """Whether our items hold beside the client's."""
    try:
        validate(RESPONSES, parsed(*ours), parsed(*clients))
    except InvalidRewrite:
        return False
    return True


# --- invariants ------------------------------------------------------------------------------------------------------


def test_no_cut_lies_between_a_call_and_its_output_wherever_that_stands():
    items = [user("go"), call(1), call(2), output(2), output(1), says("ok"), user("more")]
    assert cuts(*items) == [0, 1, 5, 6]


def test_no_cut_lies_inside_an_answer_behind_its_reasoning():
    items = [user("go"), thought(1), says("Reading."), call(1), output(1), thought(2), call(2), output(2), user("more")]
    assert cuts(*items) == [0, 1, 5, 8]


def test_words_stay_with_the_calls_that_they_announce():
    assert cuts(user("go"), says("Reading."), call(1), output(1), user("more")) == [0, 1, 4]
    served = {"type": "web_search_call", "id": "ws_1", "action": {"query": "go"}}
    assert cuts(user("go"), served, served, says("Found."), user("more")) == [0, 1, 2, 3, 4]


def test_no_cut_lies_inside_the_newest_answer():
    assert cuts(user("go"), says("Reading."), call(1), call(2), output(1), output(2)) == [0, 1]


def test_an_output_whose_call_is_hidden_stays_with_the_answer_before_it():
    items = [user("go"), {"type": "from_the_future"}, output(1), user("more"), says("x"), user("y")]
    assert cuts(*items) == [0, 1, 3, 4, 5]


def test_what_only_the_server_can_read_is_never_cut():
    for reference in ({"type": "item_reference", "id": "fc_1"}, {"id": "msg_1"}):
        assert cuts(user("go"), says("x"), user("more"), reference, output(1), user("y")) == [0, 1, 2, 3]


def test_an_output_without_its_call_and_a_call_without_its_output_are_faults():
    clients = [user("go"), call(1), output(1), user("more")]
    assert not valid([user("go"), output(1), user("more")], clients)
    assert not valid([user("go"), call(1), user("more")], clients)
    assert valid([user("go"), user("more")], clients)


def test_what_the_client_sent_wrong_stays_its_own():
    wrong = [output(9), user("go"), call(1), user("more")]
    assert valid([output(9), user("go"), user("words"), call(1), user("more")], wrong)


def test_reasoning_never_stands_without_its_item_nor_the_item_without_its_reasoning():
    clients = [user("go"), thought(1), says("42"), user("more")]
    assert not valid([user("go"), thought(1), user("more")], clients)
    assert not valid([user("go"), says("42"), user("more")], clients)
    assert not valid([user("go"), thought(1), user("words"), says("42"), user("more")], clients)
    assert valid([user("go"), user("more")], clients)


def test_an_answer_without_reasoning_needs_none():
    assert ReasoningWithItem().faults(parsed(user("go"), says("42"))) == ReasoningWithItem().faults(parsed(says("42")))


def test_a_body_that_lost_its_compaction_item_is_refused():
    clients = [user("go"), compaction(), user("more")]
    assert not valid([user("go"), user("more")], clients)
    assert sealed_until(parsed(*clients, compaction(2), user("x"))) == 4


def test_where_roles_alternate_two_user_items_in_a_row_are_a_fault():
    with pytest.raises(InvalidRewrite):
        validate(STRICT_RESPONSES, parsed(user("a"), user("b")), parsed(user("b")))


def test_outputs_of_parallel_calls_are_no_orphans_and_an_orphan_becomes_text():
    calls = parsed(user("go"), call(1), call(2), output(2), output(1))
    assert repaired(calls, DIALECT, near=False) is None
    mended = repaired(parsed(output(9, "42"), user("go")), DIALECT, near=False)
    assert mended is not None
    assert "42" in DIALECT.message(mended[0]).text


# --- own compaction --------------------------------------------------------------------------------------------------


def test_a_cut_takes_whole_groups_and_keeps_goal_developer_items_and_every_correction():
    before, behind = steps(1, 20, reasoning=True), steps(21, 60, reasoning=True)
    items = [DEVELOPER, environment(), user(GOAL), *before, user(RULE), *behind]
    made = plan(Talk().view(*items), policy(4_000))
    out = sent(made)
    assert made.kind == "compaction"
    assert out[:3] == items[:3]
    assert RULE in texts(out)[3]
    assert out[4]["type"] == "reasoning"
    assert out[4:] == items[-len(out[4:]) :]


def test_the_log_of_a_cut_tells_each_call_with_its_outcome_and_words_beside_calls_as_notes():
    work = []
    for number in range(1, 40):
        told = says(f"Module {number} needs a look because test {number} fails.")
        work += [told, call(number), output(number, f"mod_{number}: exit code {number}\n" + "row\n" * 200)]
    made = plan(Talk().view(user(GOAL), *work), policy(8_000))
    log = made.fresh[0].text
    assert "exec_command go test ./mod_30: 821 chars, exit 30" in log
    assert 'assistant noted: "Module 30 needs a look because test 30 fails."' in log
    assert "assistant answered" not in log


def test_the_next_requests_keep_the_block_byte_for_byte():
    talk = Talk()
    items = [DEVELOPER, user(GOAL), *steps(1, 40, reasoning=True)]
    first = plan(talk.view(*items), policy(3_000))
    later = plan(talk.view(*items, *steps(41, 43, reasoning=True)), policy(3_000), after(first))
    assert [piece.raw for piece in later.pieces][: len(first.pieces)] == [piece.raw for piece in first.pieces]
    assert later.kind == ""


# --- the agent's and the server's own compaction ---------------------------------------------------------------------


def test_goal_and_correction_come_back_when_an_agent_kept_only_its_summary():
    talk = Talk()
    talk.view(DEVELOPER, environment(), user(GOAL), *steps(1, 3), user(RULE), *steps(4, 6))
    out = sent(plan(talk.view(DEVELOPER, environment(), SUMMARY, says("Going on."))))
    assert [GOAL in text and RULE in text for text in texts(out)] == [False, False, True, False, False]
    assert out[2]["role"] == "user"


def test_nothing_is_put_back_while_the_agent_kept_all_words():
    talk = Talk()
    talk.view(DEVELOPER, environment(), user(GOAL), *steps(1, 3), user(RULE), *steps(4, 6))
    made = plan(talk.view(DEVELOPER, user(GOAL), DEVELOPER, environment(), user(RULE), SUMMARY))
    assert made.pieces == ()
    assert made.presence.missing == ()


def test_behind_a_compaction_item_the_words_stand_before_the_newest_user_item():
    talk = Talk()
    talk.view(user(GOAL), says("Fine."), user(RULE), *steps(1, 3))
    out = sent(plan(talk.view(compaction(), user("Go on."))))
    assert [item["type"] for item in out] == ["compaction", "message", "message"]
    assert GOAL in texts(out)[1]
    assert RULE in texts(out)[1]
    assert texts(out)[2] == "Go on."


def test_without_a_newer_user_item_the_words_stand_directly_behind_the_compaction_item():
    talk = Talk()
    talk.view(DEVELOPER, user(GOAL), user(RULE), *steps(1, 3))
    first = plan(talk.view(DEVELOPER, user(RULE), compaction()))
    later = sent(plan(talk.view(DEVELOPER, user(RULE), compaction(), *steps(4, 6)), memory=after(first)))
    assert [item["type"] for item in later[:4]] == ["message", "message", "compaction", "message"]
    assert GOAL in texts(later)[3]


def test_an_own_cut_takes_nothing_that_the_server_compacted():
    talk = Talk()
    talk.view(DEVELOPER, user(GOAL), *steps(1, 3))
    items = [DEVELOPER, user(GOAL), compaction(), *steps(4, 60, reasoning=True)]
    made = plan(talk.view(*items), policy(3_000))
    out = sent(made)
    assert made.kind == "compaction"
    assert out[:3] == items[:3]
    assert "[goalkeeper" in texts(out)[3]


@pytest.mark.parametrize("client", ["ses-1", ""])
def test_a_server_that_compacts_beside_its_answer_is_recognised_when_history_is_left_out(client):
    talk = Talk(client)
    talk.view(DEVELOPER, user(GOAL), *steps(1, 3))
    talk.answered(compaction(), says("The first three modules are ported, going on with the fourth."), call(4))
    kept = [compaction(), says("The first three modules are ported, going on with the fourth."), call(4), output(4)]
    view = talk.view(DEVELOPER, *kept)
    assert talk.link.relation == "compacted"
    assert GOAL in texts(sent(plan(view)))[-1]


def test_what_goes_on_from_a_compaction_item_stays_one_session_without_any_id():
    talk = Talk("")
    talk.view(DEVELOPER, user(GOAL), *steps(1, 3))
    first = talk.link.session
    talk.answered(compaction(), says("The first three modules are ported, going on with the fourth."))
    talk.view(DEVELOPER, compaction(), user("Go on with the fourth module."))
    talk.answered(says("The fourth module is ported as well, and its tests pass."))
    talk.view(
        DEVELOPER,
        compaction(),
        user("Go on with the fourth module."),
        says("The fourth module is ported as well, and its tests pass."),
        user("And the fifth."),
    )
    assert (talk.link.session, talk.link.relation) == (first, "extends")
    assert [turn.text for turn in talk.link.base] == [GOAL]


def test_an_order_to_compact_what_was_never_seen_keeps_the_words_in_it():
    talk = Talk("")
    talk.view(user(GOAL), user(RULE), {"type": "compaction_trigger"})
    assert talk.link.relation == "summary"
    talk.answered(compaction())
    out = texts(sent(plan(talk.view(compaction(), user("Go on.")))))
    assert GOAL in out[1]
    assert RULE in out[1]
