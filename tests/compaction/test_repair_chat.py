"""Mending chat bodies: no result is left without its call, whatever the client lost."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.compaction.repair import repaired
from tests.builders import CHAT, GOAL, SYSTEM, Wire, call, parsed, result, says, step, user
from tests.contract.wire import pairing_faults


def mended(*messages: Wire) -> list[Wire] | None:
    out = repaired(parsed(*messages), CHAT)
    return None if out is None else [json.loads(raw) for raw in out]


def test_a_sound_body_needs_no_mending():
    assert mended(SYSTEM, user(GOAL), *step(1), says("Done.")) is None


def test_an_orphan_becomes_text_that_says_what_it_is():
    out = mended(SYSTEM, user(GOAL), result("gone", "```\nrow\n```"), says("Hm."))
    assert out is not None
    assert out[2]["role"] == "user"
    assert out[2]["content"].startswith("[goalkeeper: a tool result whose call is gone, kept as data]\n````\n")
    assert "row" in out[2]["content"]
    assert out[3] == says("Hm.")


@settings(max_examples=80, deadline=None)
@given(st.lists(st.sampled_from(["call", "answer a", "answer b", "says", "user"]), max_size=8))
def test_no_result_is_left_without_its_call_whatever_was_lost(kinds: list[str]):
    made = {
        "call": says("", call("a"), call("b")),
        "answer a": result("a", "x"),
        "answer b": result("b", "y"),
        "says": says("Fine."),
        "user": user("Go on."),
    }
    talk = [made[kind] for kind in kinds]
    out = mended(*talk)
    faults = [fault for fault in pairing_faults(out if out is not None else talk) if fault.startswith("result")]
    assert faults == []
    assert out is None or len(out) == len(talk)
