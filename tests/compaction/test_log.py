"""How the work log fits its room."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.compaction.digest import LogLine
from proxy.compaction.log import fit
from tests.builders import count


def line(number: int, size: int = 100) -> LogLine:
    head = f"t{number} read_file src/mod_{number}.py"
    return LogLine(number, "step", f"{head}: {'x' * size}", head)


def test_a_log_that_fits_stands_in_full():
    log = [line(1), line(2)]
    assert fit(log, 500, count, "b1") == ((1, log[0].full), (2, log[1].full))


def test_the_oldest_lines_become_short_first():
    log = [line(number) for number in range(1, 5)]
    shown = [text for _, text in fit(log, 120, count, "b1")]
    assert shown[0] == log[0].short
    assert shown[-1] == log[-1].full


def test_what_has_no_room_at_all_is_folded_into_one_line_that_names_the_archive():
    log = [line(number) for number in range(1, 21)]
    shown = fit(log, 60, count, "b1")
    turn, text = shown[0]
    assert turn == 1
    assert text.startswith("turns 1-")
    assert "read_file" in text
    assert text.endswith("archive b1")
    assert shown[-1][1] == log[-1].short


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 600), max_size=30), st.integers(0, 800))
def test_the_log_stays_within_its_room_but_for_the_one_folded_line(sizes: list[int], room: int):
    log = [line(number, size) for number, size in enumerate(sizes, 1)]
    shown = fit(log, room, count, "b1")
    folded = len(shown) < len(log) or (bool(log) and shown[0][1].endswith("archive b1"))
    assert sum(count(text) + 1 for _, text in shown[folded:]) <= room or not shown[folded:]
    assert [turn for turn, _ in shown] == sorted(turn for turn, _ in shown)
