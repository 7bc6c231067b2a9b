"""What the packaged rules make of sentences in eleven languages, which were written for it and are in no other data."""

from functools import cache
from pathlib import Path

import pytest
import yaml

from tests.pins.build import verdict

FOLDER = Path(__file__).parent
LANGUAGES = ["ar", "de", "en", "es", "fr", "it", "ja", "ko", "pt", "ru", "zh"]
KINDS = {"undo": "correction", "goal_change": "goal"}
BINDING = ("correction", "undo", "constraint", "preference", "decision", "commitment", "fact", "goal_change")


@cache
def by_kind(language: str) -> dict[str, list[tuple[str, str]]]:
    found = yaml.safe_load((FOLDER / "sentences" / f"{language}.yaml").read_text(encoding="utf-8"))
    return {
        kind: [(said, asked) for asked, _, said in (x.rpartition(" | ") for x in texts)]
        for kind, texts in found.items()
    }


@cache
def free() -> dict[str, dict[str, list[str]]]:
    return yaml.safe_load((FOLDER / "sentences_free.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_binds_is_pinned_and_what_passes_is_not_in_each_language(language):
    for kind, said in by_kind(language).items():
        wrong = [text for text, asked in said if (verdict(text, asked).kind is not None) != (kind in BINDING)]
        assert wrong == [], kind


@pytest.mark.parametrize("language", LANGUAGES)
def test_nine_of_ten_sentences_get_the_right_kind_in_each_language(language):
    right = total = 0
    for kind, said in by_kind(language).items():
        for text, asked in said:
            found = verdict(text, asked)
            total += 1
            right += (found.kind or found.labels[0]) == KINDS.get(kind, kind)
    assert right >= 0.88 * total


@pytest.mark.parametrize("language", LANGUAGES)
def test_freer_talk_loses_nothing_that_binds_and_pins_little_that_passes(language):
    talk = free()[language]
    lost = [text for text in talk["binds"] if verdict(text).kind is None]
    pinned = [text for text in talk["passes"] if verdict(text).kind is not None]
    assert lost == []
    assert len(pinned) <= 1, pinned
