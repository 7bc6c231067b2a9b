import time

import pytest

from proxy.pins.turning import holds, lets_go, turned_by
from proxy.pins.values import Value, values


@pytest.mark.parametrize(
    ("text", "sort", "value"),
    [
        ("on 12 May", "date", "12"), ("it's the 19th now", "date", "19"), ("am 14. Mai", "date", "14"),
        ("11月23日に行きます", "date", "11月23日"), ("jueves", "weekday", "thu"), ("в пятницу", "weekday", "fri"),
        ("월요일", "weekday", "mon"), ("at 6:45", "time", "6:45"), ("18 Uhr", "time", "18 uhr"),
        ("90 days", "day", "90"), ("30分钟", "min", "30"), ("18 €", "money", "18"), ("$260 a head", "money", "260"),
        ("0.5 s", "s", "0.5"), ("call it 12", "number", "12"), ("v1.4.2", "version", "1.4.2"),
        ("write to ana@example.org", "address", "ana@example.org"),
    ],
)  # fmt: skip
def test_a_value_is_found_with_its_sort(text, sort, value):
    assert Value(sort, value) in values(text)


@pytest.mark.parametrize("text", ["issue 88 is blocked", "see #412", "step 3", "no numbers here"])
def test_a_number_that_names_something_is_no_value(text):
    assert values(text) == frozenset()


def test_words_are_turned_by_the_other_direction_only():
    assert turned_by("skip hakone", "put hakone back")
    assert turned_by("leave the old login in for now", "remove the old login then")
    assert not turned_by("skip hakone", "skip nara")


def test_a_hold_and_what_lets_it_go():
    assert holds("read only until I say so")
    assert not holds("never touch the tests")
    assert lets_go("ok, you can start now")
    assert not lets_go("ok")
    assert not lets_go("don't go ahead")


@pytest.mark.parametrize("piece", ["1", "a.", "1 ", "a@", "12 - ", "1.1.", "http://a", "leave a "])
def test_values_of_hostile_text_are_found_in_bounded_time(piece):
    text = piece * 200_000
    start = time.process_time()
    values(text)
    turned_by(text[:4000], text)
    holds(text[:8000])
    lets_go(text)
    assert time.process_time() - start < 1
