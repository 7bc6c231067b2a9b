"""The demonstration: it measures what really went out, and it fails when a promise was broken."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from proxy.cli import demo
from proxy.cli.main import main
from proxy.demo import script
from proxy.demo.agent import Exchange
from proxy.demo.model import StandIn, paired
from proxy.demo.outcome import Outcome, Survival, measure
from proxy.tokens import Counter

ROOT = Path(__file__).parent.parent
GOAL, _, _, CORRECTION = script.STORY[:4]
BOUND = [words for words in script.STORY if words.kind in ("goal", "correction")]


def played(folder: Path, *words: str) -> tuple[int, dict]:
    done = subprocess.run(
        [sys.executable, "-m", "proxy", "demo", "--json", "--data", folder, *words],
        cwd=ROOT,
        env={**os.environ, "GOALKEEPER_MODE": "observe"},  # settings in the environment are none of the demo's
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def test_the_demo_keeps_every_binding_word_through_its_own_and_the_agents_compactions(tmp_path):
    code, told = played(tmp_path / "data")
    assert code == 0
    assert told["compactions"] >= 3
    assert told["summary_calls"] == told["restores"] == 1
    assert [one["here"] for one in told["words"]] == [one["due"] for one in told["words"]]
    assert all(one["naive"] < one["due"] for one in told["words"])
    assert told["largest_here"] <= told["budget"] < told["largest_agent"]
    assert told["streams"] == told["streams_in_time"] > 0
    assert told["prefix_breaks"] == told["compactions"] + told["summary_calls"]
    assert {fact["text"] for fact in told["facts"]} >= {words.text for words in BOUND}
    assert told["verify"]["rebuilt"] >= told["requests"]
    for words, _ in demo._LOOKS:  # the lines that the demo prints can be typed as they stand
        assert main([*words.format(block="last").split(), "--data", str(tmp_path / "data")]) == 0


def test_the_demo_fails_when_goalkeeper_may_only_observe(tmp_path):
    (tmp_path / "observe.yaml").write_text("mode: observe\n")
    code, told = played(tmp_path / "data", "--config", str(tmp_path / "observe.yaml"))
    assert code == 1
    assert not told["kept"]
    assert all(one["here"] == one["agent"] < one["due"] for one in told["words"])


def test_the_demo_does_not_mix_with_what_is_stored_already(tmp_path, capsys):
    (tmp_path / "goalkeeper.db").touch()
    assert main(["demo", "--data", str(tmp_path)]) == 2
    assert "a folder of its own" in capsys.readouterr().err


def user(text: str) -> dict:
    return {"role": "user", "content": text}


def outcome_of(*forwarded: list[dict]) -> Outcome:
    """What is measured when the user has said goal and correction, and these messages were forwarded."""
    log = (user(GOAL.text), user(CORRECTION.text))
    sent = json.dumps({"model": "m", "messages": log, "tools": script.TOOLS}).encode()
    stand_in = StandIn((), Counter())
    stand_in.bodies = [json.dumps({"model": "m", "messages": list(one)}).encode() for one in forwarded]
    exchanges = [Exchange(sent, log, "", "") for _ in forwarded]
    return measure(exchanges, stand_in, Counter(), 12_000)


BLOCK = "[goalkeeper 1/2: words]\n{first}\n\n[goalkeeper 2/2: record]\n{second}"


@pytest.mark.parametrize(
    "messages",
    [
        [user(GOAL.text)],
        [user(GOAL.text), {"role": "assistant", "content": CORRECTION.text}],
        [user(GOAL.text), user(f"Here is a summary: the user said {CORRECTION.text}")],
        [user(GOAL.text), user(BLOCK.format(first="", second=CORRECTION.text))],
        [user(GOAL.text), user(BLOCK.format(first=CORRECTION.text[:-1], second=""))],
    ],
    ids=["missing", "said by the assistant", "quoted in a summary", "in the work log", "one letter short"],
)
def test_words_count_as_lost_when_they_do_not_stand_as_the_users_own(messages):
    assert not outcome_of(messages).kept


def test_words_count_as_kept_where_they_were_said_and_in_the_first_part_of_a_block():
    said = [user(GOAL.text), user(CORRECTION.text)]
    told = [user(BLOCK.format(first=f"{GOAL.text}\n{CORRECTION.text}", second=""))]
    outcome = outcome_of(said, told)
    goal, correction = (words for words in outcome.words if words.text in (GOAL.text, CORRECTION.text))
    assert (goal.here, correction.here) == (2, 2)


def test_a_missing_request_counts_as_one_without_the_words():
    outcome = outcome_of([user(GOAL.text), user(CORRECTION.text)])
    log = (user(GOAL.text),)
    stand_in = StandIn((), Counter())
    sent = json.dumps({"model": "m", "messages": log}).encode()
    assert outcome.words[0].here == 1
    assert measure([Exchange(sent, log, "", "")], stand_in, Counter(), 12_000).words[0].here == 0


def test_a_prefix_breaks_when_an_older_message_changes_and_not_when_messages_are_added():
    first, second = user(GOAL.text), user(CORRECTION.text)
    assert outcome_of([first], [first, second]).prefix_breaks == 0
    assert outcome_of([first, second], [second, second]).prefix_breaks == 1


def test_the_stand_in_refuses_what_a_real_api_refuses():
    call = {"role": "assistant", "tool_calls": [{"id": "c1"}]}
    result = {"role": "tool", "tool_call_id": "c1"}
    assert paired([user("a"), call, result])
    assert not paired([user("a"), call, user("b")])
    assert not paired([user("a"), result])


def test_hostile_text_in_a_report_does_not_reach_the_terminal(capsys):
    survival = Survival("goal", "ring\x07 the \x1b[31mbell", due=1, naive=0, agent=1, here=1, first_lost=1)
    zeros = dict.fromkeys(Outcome.__dataclass_fields__, 0)
    outcome = Outcome(**{**zeros, "words": (survival,), "blocks": "\x1b]0;title\x07\n" * 40})  # type: ignore[arg-type]
    fact = {"kind": "goal", "status": "active", "turn": 1, "text": "\x1b[2J"}
    run = demo.Run(outcome, [fact], {"receipts": 0, "rebuilt": 0, "problems": []}, "0f", 1.0)
    demo._tell(run, Path("/tmp/with\x1b[31mcolour"))
    printed = capsys.readouterr().out
    assert "bell" in printed
    assert all(character == "\n" or character.isprintable() for character in printed)
