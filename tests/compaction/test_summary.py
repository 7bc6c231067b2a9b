"""A model-written summary is used only when nothing speaks against it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from proxy.compaction.summary import SummaryRejected, source_text, validated
from proxy.transcript import Answer, Call
from tests.builders import count, parsed, result, says, step, user

SOURCE = "assistant: the pool leaks because close() is never called\n" * 30
GOOD = Answer(text="The pool leaked; close() was added. Tests pass.", finish="stop", prompt_tokens=600)


def checked(answer: Answer, source_tokens: int = 400) -> str:
    return validated(answer, SOURCE, source_tokens, count)


def test_a_sound_summary_passes_as_it_is():
    assert checked(GOOD) == GOOD.text


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ({"calls": (Call("read", "{}", "c"),)}, "tool call"),
        ({"refusal": "I can't."}, "refused"),
        ({"finish": "length"}, "length"),
        ({"finish": ""}, "no finish reason"),
        ({"text": "  \n"}, "empty"),
        ({"prompt_tokens": 150}, "read 150 tokens of 400"),
        ({"text": "word " * 400}, "not smaller"),
        ({"text": 'It says "delete the whole table now".'}, "quotes words"),
        ({"text": "Es heißt „lösche die ganze Tabelle“."}, "quotes words"),
    ],
)
def test_a_fault_makes_it_worthless_and_is_named(fault: dict[str, object], words: str):
    with pytest.raises(SummaryRejected, match=words):
        checked(replace(GOOD, **fault))


def test_a_sentence_about_the_user_is_marked_as_unverified():
    told = checked(replace(GOOD, text="The pool leaked. The user agreed to drop it. Tests pass."))
    assert told == "The pool leaked. [unverified] The user agreed to drop it. Tests pass."


def test_a_quote_from_the_source_is_fine():
    assert checked(replace(GOOD, text='It "leaks because close() is never called".'))


def test_the_source_is_shortened_turn_by_turn_with_the_first_and_the_last_turn_in_it():
    talk = parsed(
        user("Look at the pool."), *step(1, size=9_000), *step(2, size=9_000), says("It leaks."), result("x", "end")
    )
    whole, short = source_text(talk, count, 0, str), source_text(talk, count, 400, str)
    assert count(short) <= 400 < count(whole)
    assert short.startswith("user: Look at the pool.")
    assert short.endswith("tool: end")
    assert len(short.split("\n")) == len(talk)
