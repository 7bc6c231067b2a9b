"""Token counts: each text once, calibrated by what the upstream reports, windows from the table."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.tokens import (
    IMAGE_TOKENS,
    MESSAGE_TOKENS,
    OPAQUE_TOKENS,
    Calibration,
    Counter,
    load_encoder,
    rough,
    table_window,
    vocabulary_folder,
)  # fmt: skip
from tests.builders import call, count, parsed, result, says, user

DAY = 86_400


def test_the_vocabulary_counts_offline_as_the_public_tokenizer_does():
    assert vocabulary_folder() is not None
    encode = load_encoder()
    assert [encode(text) for text in ("", "hello world", "Straße 表格", "<|endoftext|>")] == [0, 2, 4, 7]


def test_text_without_blanks_costs_linear_time_and_hardly_more_tokens():
    encode = load_encoder()
    assert 100_000 / 10 < encode("a" * 100_000) < 100_000


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=200))
def test_the_rough_count_is_a_third_of_the_bytes(text: str):
    assert rough(text) == len(text.encode("utf-8", "surrogatepass")) // 3 + 1


def test_every_part_of_a_message_counts():
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    plain, picture, asked, answer, odd = parsed(
        user("Go on."),
        {"role": "user", "content": [{"type": "text", "text": "Look."}, image]},
        says("Yes.", call("c", path="a.py")),
        result("c", "x" * 40),
        {"role": "user", "content": [{"type": "hologram"}]},
    )
    counter = Counter(count)
    assert counter.message(plain) == MESSAGE_TOKENS + count("Go on.")
    assert counter.message(picture) == MESSAGE_TOKENS + count("Look.") + IMAGE_TOKENS
    assert counter.message(asked) > MESSAGE_TOKENS * 2 + count("Yes.") + count("read_file")
    assert counter.message(answer) == MESSAGE_TOKENS + 11
    assert counter.message(odd) == MESSAGE_TOKENS + OPAQUE_TOKENS


def test_a_message_is_counted_once_and_counts_come_back_from_outside():
    asked: list[str] = []
    counter = Counter(lambda text: asked.append(text) or 5)
    first, second = parsed(user("a"), user("b"))
    assert counter.message(first) == counter.message(first) == 5 + MESSAGE_TOKENS
    assert counter.once("tools") == counter.once("tools") == 5
    assert asked == ["a", "tools"]
    counter.learn({second.digest: 77})
    assert counter.unknown((first, second)) == []
    assert counter.message(second) == 77


def test_before_the_vocabulary_is_loaded_nothing_is_kept():
    counter = Counter()
    message = parsed(user("a" * 30))[0]
    assert (counter.ready, counter.message(message)) == (False, MESSAGE_TOKENS + 11)
    assert counter.unknown((message,)) == [message]


def test_the_first_report_sets_the_ratio_and_later_ones_move_it():
    first = Calibration().reported(1_000, 1_200)
    assert first is not None
    assert (first.ratio, first.samples) == (1.2, 1)
    second = first.reported(1_000, 1_000)
    assert second is not None
    assert second.ratio == pytest.approx(1.14)


@pytest.mark.parametrize(("estimate", "reported"), [(1_000, 499), (1_000, 2_001), (0, 10), (1_000, 0)])
def test_a_report_too_far_off_is_not_learnt(estimate: int, reported: int):
    assert Calibration().reported(estimate, reported) is None


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 10_000), st.integers(0, 40_000)), max_size=20))
def test_the_ratio_never_leaves_its_bounds(reports: list[tuple[int, int]]):
    known = Calibration()
    for estimate, reported in reports:
        known = known.reported(estimate, reported) or known
    assert 0.5 <= known.ratio <= 2


def test_a_learnt_window_holds_for_a_day():
    known = Calibration().overflowed(8_192, now=1_000)
    assert known.known_window(1_000 + DAY - 1) == 8_192
    assert known.known_window(1_000 + DAY) == 0


def test_windows_come_from_the_table_with_and_without_a_providers_prefix():
    assert table_window("gpt-4o") == table_window("openai/gpt-4o") == table_window("GPT-4o") == 128_000
    assert table_window("no-such-model") == 0
