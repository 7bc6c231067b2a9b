import time

import pytest

from proxy.pins.phrases import Phrases, comparable

OWN = Phrases.of(["yes | go on | 好的 | 继续"], ["thanks | please | 请"])


@pytest.mark.parametrize("text", ["yes", "Yes, please go on!", "thanks... YES", "yesss 🎉", "好的，请继续。", "go  on"])
def test_a_turn_of_known_phrases_is_known(text):
    assert OWN.make_up(comparable(text.lower()))


@pytest.mark.parametrize("text", ["thanks", "yes?", "yes but only staging", "go", "yesterday", "好的不要", "", "!!"])
def test_a_word_more_or_a_question_is_something_else(text):
    assert not OWN.make_up(comparable(text.lower()))


def test_a_text_of_many_phrases_takes_no_longer_than_it_is_long():
    many = Phrases.of(["a | aa | aaa | a a | a a a"])
    start = time.process_time()
    assert not many.make_up(comparable("a " * 44 + "b"))
    assert time.process_time() - start < 0.05
