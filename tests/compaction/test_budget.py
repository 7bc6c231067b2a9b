"""How many tokens a body may have: what was asked, never more than the window less the output."""

from __future__ import annotations

import pytest

from proxy.compaction.budget import UNKNOWN_PINS, budget_of


@pytest.mark.parametrize(
    ("asked", "window", "output", "mode", "trigger", "hard"),
    [
        (32_000, 0, 0, "full", 32_000, 0),
        (32_000, 128_000, 8_000, "full", 32_000, 120_000),
        (200_000, 128_000, 8_000, "full", 120_000, 120_000),
        (0, 100_000, 0, "full", 90_000, 100_000),
        (0, 100_000, 20_000, "full", 72_000, 80_000),
        (32_000, 100_000, 0, "restore", 100_000, 100_000),
        (0, 0, 0, "full", 0, 0),
        (0, 8_000, 8_000, "full", 1_800, 2_000),
    ],
)
def test_the_trigger_and_the_hard_limit(asked: int, window: int, output: int, mode: str, trigger: int, hard: int):
    budget = budget_of(asked=asked, window=window, max_output=output, share=0.9, mode=mode)
    assert (budget.trigger, budget.size, budget.hard) == (trigger, trigger, hard)


def test_pins_take_a_quarter_unless_a_person_says_otherwise():
    known = budget_of(asked=32_000, window=0, max_output=0, share=0.9, mode="full")
    assert (known.pins(None), known.pins(500)) == (8_000, 500)
    unknown = budget_of(asked=0, window=0, max_output=0, share=0.9, mode="full")
    assert unknown.pins(None) == UNKNOWN_PINS
