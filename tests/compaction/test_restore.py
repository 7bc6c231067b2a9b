"""Words that left the body outside of Goalkeeper come back, in the role user, at a fixed place."""

from __future__ import annotations

import msgspec
import pytest

from proxy.compaction.draft import Memory
from proxy.pins.lifecycle import Edit
from tests.builders import GOAL, SYSTEM, Follower, after, block, plan, policy, says, sent, step, steps, user

RULE = "Never touch the folder legacy."
SUMMARY = user("Notes of what came before:\nThe modules one to four were read and half of them are ported by now.")
ADDED = Edit("add", text="Write no new dependencies.", kind="constraint")


def compacted(*tail: dict[str, object], strict: bool = False):
    """What goes out when an agent restarts with a summary that lost the goal and a rule."""
    follower = Follower()
    follower.view(SYSTEM, user(GOAL), says("Fine."), user(RULE), *steps(1, 2))
    return plan(follower.view(SYSTEM, SUMMARY, *tail), policy(strict=strict))


def test_goal_and_rule_come_back_in_a_message_of_the_user_before_the_summary():
    messages = sent(compacted(says("Going on.")))
    assert [message["role"] for message in messages] == ["system", "user", "user", "assistant"]
    assert GOAL in messages[1]["content"]
    assert RULE in messages[1]["content"]
    assert messages[2] == SUMMARY


def test_where_roles_alternate_the_words_stand_inside_the_clients_message():
    messages = sent(compacted(says("Going on."), strict=True))
    assert [message["role"] for message in messages] == ["system", "user", "assistant"]
    assert messages[1]["content"].index(RULE) < messages[1]["content"].index(SUMMARY["content"])


def test_the_words_stand_behind_the_goal_when_the_body_still_begins_with_it():
    follower = Follower()
    follower.view(SYSTEM, user(GOAL), *step(1), user(RULE), *steps(2, 9))
    messages = sent(plan(follower.view(SYSTEM, user(GOAL), *steps(7, 9))))
    assert [message["content"] for message in messages[:2]] == [SYSTEM["content"], GOAL]
    assert RULE in messages[2]["content"]


def test_a_restore_stands_in_later_requests_byte_for_byte():
    follower = Follower()
    follower.view(SYSTEM, user(GOAL), *steps(1, 4))
    first = plan(follower.view(SYSTEM, SUMMARY, *step(5)))
    later = plan(follower.view(SYSTEM, SUMMARY, *steps(5, 8)), memory=after(first))
    assert [piece.raw for piece in later.pieces][: len(first.pieces)] == [piece.raw for piece in first.pieces]
    assert later.kind == ""


def test_small_talk_that_vanished_comes_back_as_record_and_not_as_the_users_words():
    follower = Follower()
    follower.view(SYSTEM, user(GOAL), says("Done with one."), user("How many are left?"), *steps(1, 3))
    text = block(plan(follower.view(SYSTEM, SUMMARY, *step(4))))
    words, record = text.split("[goalkeeper 2/2")
    assert "How many are left?" in record
    assert "How many are left?" not in words


def test_what_a_person_adds_stands_at_the_end_of_the_newest_message():
    seen = Follower().view(SYSTEM, user(GOAL), edits=[ADDED])
    assert sent(plan(seen))[-1]["content"].startswith(GOAL)
    assert ADDED.text in sent(plan(seen))[-1]["content"]


def test_what_a_person_adds_during_work_follows_the_results():
    messages = sent(plan(Follower().view(SYSTEM, user(GOAL), *step(1), edits=[ADDED])))
    assert [message["role"] for message in messages[-2:]] == ["tool", "user"]
    assert ADDED.text in messages[-1]["content"]


def test_what_a_person_adds_never_makes_two_user_messages_in_a_row_where_roles_alternate():
    follower = Follower()
    rules = policy(strict=True)
    first = plan(follower.view(SYSTEM, user(GOAL), *step(1), edits=[ADDED]), rules)
    assert ADDED.text in sent(first)[1]["content"]
    spoken = follower.view(SYSTEM, user(GOAL), *step(1), user("Wait."), edits=[ADDED])
    later = sent(plan(spoken, rules, after(first)))
    assert [message["role"] for message in later] == ["system", "user", "assistant", "tool", "user"]
    assert ADDED.text in later[1]["content"]


def test_a_withdrawn_rule_is_named_as_no_longer_valid():
    follower = Follower()
    seen = follower.view(SYSTEM, user(GOAL), user(RULE), *steps(1, 3))
    rule = next(pin.id for pin in seen.ledger.pins if pin.text == RULE)
    first = plan(follower.view(SYSTEM, SUMMARY, *step(4)))
    later = follower.view(SYSTEM, SUMMARY, *steps(4, 5), edits=[Edit("retract", pin=rule)])
    second = plan(later, memory=after(first))
    assert "Withdrawn" in block(second) or "No longer valid" in block(second)
    assert rule in second.fresh[0].withdrawn


def test_nothing_lost_means_no_insertion():
    assert plan(Follower().view(SYSTEM, user(GOAL), *steps(1, 3))).pieces == ()


@pytest.mark.parametrize("refused", [True, False])
def test_a_restore_that_the_upstream_refused_is_not_made_again(refused: bool):
    follower = Follower()
    follower.view(SYSTEM, user(GOAL), *steps(1, 4))
    seen = follower.view(SYSTEM, SUMMARY, *step(5))
    first = plan(seen)
    memory = Memory(first.fresh, frozenset({first.fresh[0].id}) if refused else frozenset())
    again = plan(seen, memory=memory)
    assert (first.fresh[0].id in {one.id for one in again.insertions}) is not refused
    assert msgspec.json.encode(first.fresh) == msgspec.json.encode(plan(seen).fresh)
