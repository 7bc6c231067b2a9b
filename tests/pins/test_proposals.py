"""What is believed of a model's proposals: whole sentences of the person's own words, and nothing else."""

from __future__ import annotations

import pytest

from proxy.pins.lifecycle import fold
from proxy.pins.proposals import MOST, Proposed, UnreadableProposals, checked, is_open, own_words, read
from proxy.pins.rules import load_rules
from proxy.transcript import HumanTurn

SAID = (
    "Our customers live in Norway. Do not delete the old table, it is evidence!\n"
    "It said “please drop all tables at once”.\n"
    "```\nalways answer in French\n```\nERROR never use port 80\nThanks"
)
THANKS = {"name": "thanks", "kind": "history", "label": "chatter", "patterns": ["^thanks"]}
TURN = HumanTurn(b"k" * 16, SAID, 3, "d" * 32)


def believed(*proposed: Proposed, least: float = 0.5) -> tuple[list[str], dict[str, int]]:
    kept, dropped = checked(proposed, own_words(SAID), TURN, str, least)
    assert all(SAID[slice(*one.span)] == one.quote for one in kept)
    return [one.quote for one in kept], dict(dropped)


def test_whole_sentences_of_the_persons_own_words_are_believed() -> None:
    quotes = ("Our customers live in Norway.", "Do not delete the old table, it is evidence", "Thanks")
    assert believed(*(Proposed("fact", quote, 0.9) for quote in quotes)) == (list(quotes), {})


@pytest.mark.parametrize(
    ("quote", "reason"),
    [
        ("Delete the old table.", "no quote"),
        ("our customers live in norway.", "no quote"),
        ("delete the old table, it is evidence!", "half a sentence"),
        ("Our customers live", "half a sentence"),
        ("please drop all tables at once", "no quote"),
        ("always answer in French", "no quote"),
        ("ERROR never use port 80", "no quote"),
        ("", "no quote"),
        ("x" * 5000, "no quote"),
    ],
)
def test_made_up_halved_and_pasted_words_are_not(quote: str, reason: str) -> None:
    assert believed(Proposed("constraint", quote, 0.9)) == ([], {reason: 1})


@pytest.mark.parametrize(
    ("kind", "confidence", "reason"),
    [
        ("order", 0.9, "unknown kind"),
        ("approval", 0.9, "unknown kind"),
        ("goal", 0.4, "unsure"),
        ("goal", 7.0, "unsure"),
        ("goal", float("nan"), "unsure"),
    ],
)
def test_unknown_kinds_and_odd_confidence_are_dropped(kind: str, confidence: float, reason: str) -> None:
    assert believed(Proposed(kind, "Our customers live in Norway.", confidence)) == ([], {reason: 1})


def test_the_same_quote_counts_once_and_only_a_few_at_all() -> None:
    once = Proposed("fact", "Thanks", 0.9)
    assert believed(once, once) == (["Thanks"], {"too many": 1})
    text = "".join(f"Rule {number} holds.\n" for number in range(9))
    kept, dropped = checked(
        [Proposed("constraint", f"Rule {number} holds.", 1.0) for number in range(9)],
        text,
        HumanTurn(b"k" * 16, text, 1, ""),
        str,
        0,
    )
    assert (len(kept), dropped["too many"]) == (MOST, 9 - MOST)


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "I can't help with that.",
        "[]",
        "{}",
        '{"proposals": "all"}',
        '{"proposals": [{"kind": 3}]}',
        "{" * 50_000,
        "{" * 50_000 + "}",
    ],
)
def test_what_is_not_the_asked_json_is_unreadable(answer: str) -> None:
    with pytest.raises(UnreadableProposals):
        read(answer)


def test_json_in_a_fence_with_words_around_it_is_read() -> None:
    answer = 'Sure!\n```json\n{"proposals": [{"kind": "fact", "quote": "a", "confidence": 1}]}\n```'
    assert read(answer) == (Proposed("fact", "a", 1.0),)


@pytest.mark.parametrize(
    ("text", "is_left"),
    [
        ("The staging box has 2 GB of memory.", True),
        ("Thanks!", False),
        ("Never use tabs.", False),
        ("See the log.\n" + "ERROR boom at line 3 of the module\n" * 4, True),
    ],
)
def test_a_turn_is_open_where_no_rule_has_decided(text: str, is_left: bool) -> None:
    rules = load_rules([], [{"name": "ban", "kind": "constraint", "patterns": ["never"]}, THANKS])
    goal = HumanTurn(b"g" * 16, "Port the billing service to Go.", 1, "")
    turn = HumanTurn(b"k" * 16, text, 3, "")
    assert is_open(turn, fold([goal, turn], rules), rules) is is_left
    assert not is_open(goal, fold([goal, turn], rules), rules)
