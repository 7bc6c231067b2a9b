"""A pin is present where its turn stands or in a block of ours: not in a summary, not by chance."""

from __future__ import annotations

from proxy.compaction.presence import presence
from tests.builders import GOAL, SYSTEM, Follower, call, plan, policy, result, says, step, steps, user

RULE = "Never touch the folder legacy."


def shown(*messages, earlier=()):
    """Which texts of active pins stand in the body, and which don't, before anything is put back."""
    follower = Follower()
    if earlier:
        follower.view(SYSTEM, *earlier)
    seen = follower.view(SYSTEM, *messages)
    names = {pin.id: pin.text for pin in seen.ledger.active}
    found = presence(seen, ())
    return {names[one] for one in found.verbatim}, {names[one] for one in found.missing}


EARLIER = (user(GOAL), says("Fine."), user(RULE), *steps(1, 3))


def test_words_that_stand_where_they_were_said_are_present():
    assert shown(*EARLIER) == ({GOAL, RULE}, set())


def test_a_quote_in_a_summary_does_not_count():
    summary = user(f'Notes of what came before:\nThe user said "{RULE}" and wants this: {GOAL}')
    assert shown(summary, *step(4), user("Go on."), earlier=EARLIER) == (set(), {GOAL, RULE})


def test_a_quote_in_tool_output_or_in_an_answer_does_not_count():
    body = (user(GOAL), says(f"You said: {RULE}", call("c9")), result("c9", RULE), *steps(2, 3))
    assert shown(*body, earlier=EARLIER) == ({GOAL}, {RULE})


def test_a_plan_puts_back_what_is_missing_and_says_so():
    follower = Follower()
    follower.view(SYSTEM, *EARLIER)
    made = plan(follower.view(SYSTEM, user("Notes: half is done, the rest is to do."), *step(4), user("Go on.")))
    assert (made.presence.missing, made.presence.partial) == ((), ())
    assert len(made.presence.verbatim) == made.presence.active == 2


def test_a_pin_that_has_no_room_is_an_excerpt_and_never_called_verbatim():
    follower = Follower()
    long = "Never touch these folders: " + ", ".join(f"legacy_{number}" for number in range(400)) + "."
    follower.view(SYSTEM, user(GOAL), says("Fine."), user(long), *steps(1, 2))
    rules = policy(1_000, pin_tokens=200, pins_hard=True)
    made = plan(follower.view(SYSTEM, user("Notes: half is done, the rest is to do."), *step(3), user("Go on.")), rules)
    assert len(made.presence.partial) == 1
    assert made.presence.active == 2
    assert "pin_excerpted" in made.flags
    assert "[… kept" in made.fresh[-1].text
