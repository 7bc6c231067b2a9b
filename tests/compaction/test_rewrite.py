"""The one path on which a body is rewritten: the client's bytes, and each insertion at its place."""

from __future__ import annotations

from itertools import pairwise

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.compaction.insertion import Insertion, Placement
from proxy.compaction.rewrite import applicable, apply, removed
from proxy.compaction.view import View
from tests.builders import CHAT, GOAL, SYSTEM, says, step, steps, user, view
from tests.contract.wire import pairing_faults

TALK = (SYSTEM, user(GOAL), *steps(1, 3), says("Three are done."), user("Go on."), *steps(4, 5))


def insertion(seen: View, start: int, end: int, placement: Placement = "message", name: str = "i1") -> Insertion:
    return Insertion(name, "b", start, end, seen.anchor(end), placement, f"words of {name}", "compaction")


def wire(seen: View, *insertions: Insertion, alternate: bool = False):
    return [msgspec.json.decode(piece.raw) for piece in apply(insertions, seen, CHAT, alternate=alternate)]


def test_without_insertions_every_message_keeps_its_bytes():
    seen = view(*TALK)
    assert [piece.raw for piece in apply((), seen, CHAT)] == [message.raw for message in seen.messages]


def test_the_messages_of_a_cut_leave_and_the_insertion_stands_in_their_place():
    seen = view(*TALK)
    messages = wire(seen, insertion(seen, 1, 5))
    assert messages[:3] == [SYSTEM, user(GOAL), user("words of i1")]
    assert messages[3:] == list(TALK[6:])


def test_system_text_inside_a_cut_stays():
    late = {"role": "system", "content": "The date is fixed."}
    seen = view(SYSTEM, user(GOAL), *step(1), late, *steps(2, 3))
    cut = insertion(seen, 0, 5)
    assert late in wire(seen, cut)
    assert all(seen.messages[index].role != "system" for index in removed((cut,), seen))


def test_an_insertion_can_be_a_part_of_the_message_before_or_behind_its_place():
    seen = view(*TALK)
    before = wire(seen, insertion(seen, 1, 3, "into_previous"))
    assert before[1]["content"] == GOAL + "\n\nwords of i1"
    behind = wire(seen, insertion(seen, 0, 0, "into_next"))
    assert behind[1]["content"] == "words of i1\n\n" + GOAL


def test_where_roles_alternate_no_message_of_ours_stands_beside_another_user_message():
    seen = view(*TALK, user("Wait."))
    last = len(seen.keys) - 1
    made = (insertion(seen, 0, 0), insertion(seen, 1, 3, name="i2"), insertion(seen, last, last, name="i3"))
    messages = wire(seen, *made, alternate=True)
    roles = [message["role"] for message in messages]
    assert all(pair != ("user", "user") for pair in pairwise(roles))
    told = "".join(str(message["content"]) for message in messages if message["role"] == "user")
    assert all(one.text in told for one in made)


def test_an_insertion_stands_only_while_the_keys_before_it_are_the_same():
    seen = view(*TALK)
    cut = insertion(seen, 1, 5)
    assert applicable([cut], view(*TALK, *step(9))) == (cut,)
    assert applicable([cut], view(SYSTEM, user("Write a poem."), *TALK[2:])) == ()


def test_pruned_results_and_moved_reminders_leave_an_insertion_in_its_place():
    seen = view(*TALK)
    cut = insertion(seen, 1, 3)
    pruned = [{**message, "content": "(pruned)"} if message["role"] == "tool" else message for message in TALK]
    assert applicable([cut], view(*pruned)) == (cut,)


def test_a_merged_block_takes_the_place_of_those_that_it_replaces():
    seen = view(*TALK)
    old = insertion(seen, 1, 3)
    new = msgspec.structs.replace(insertion(seen, 1, 5, name="i2"), replaces=("i1",))
    assert applicable([old, new], seen) == (new,)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_what_stays_keeps_its_bytes_and_its_order_and_calls_stay_paired(data: st.DataObject):
    seen = view(*TALK)
    opening = [key for key in range(len(seen.keys)) if seen.opens_message(key)]
    places = [key for key in opening if seen.messages[seen.place(key)].role != "tool"]
    start, end = sorted((data.draw(st.sampled_from(places)), data.draw(st.sampled_from(places))))
    pieces = apply((insertion(seen, start, end),), seen, CHAT)
    own = [piece for piece in pieces if piece.source is None]
    kept = [piece.source for piece in pieces if piece.source is not None]
    assert len(own) == 1
    assert kept == [message for index, message in enumerate(seen.messages) if message in kept]
    assert all(piece.raw == piece.source.raw for piece in pieces if piece.source)
    assert pairing_faults([msgspec.json.decode(piece.raw) for piece in pieces]) == []
