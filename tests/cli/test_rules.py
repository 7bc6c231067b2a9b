"""`goalkeeper rules`: trying rules on words, files and stored sessions, predicting labels, scoring them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from proxy.cli.main import main
from proxy.redaction import Sealer
from proxy.store.keys import key_path, load_key
from proxy.store.sqlite import Store
from tests.store.build import asked, said

SESSION = {
    "session_id": "s1",
    "language": "en",
    "client_style": "claude-code",
    "turns": [
        {"role": "user", "content": "Build the api.", "labels": ["goal"], "pin": True, "supersedes": []},
        {"role": "assistant", "content": "Which port shall I use?"},
        {"role": "user", "content": "port 8080", "labels": ["decision"], "pin": True, "supersedes": []},
        {"role": "user", "content": "[Request interrupted by user]", "labels": ["injected"], "pin": False},
        {"role": "user", "content": "no, 9090, not 8080", "labels": ["correction"], "pin": True, "supersedes": [2]},
        {"role": "user", "content": "thanks", "labels": ["chatter"], "pin": False, "supersedes": []},
    ],
}


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Runs the command: exit code, output, error output."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)

    def command(*words: object):
        code = main(["--data", str(tmp_path / "data"), "rules", *map(str, words)])
        return code, *capsys.readouterr()

    return command


@pytest.fixture
def sessions(tmp_path: Path) -> Path:
    return written(tmp_path / "sessions.jsonl", json.dumps(SESSION))


def written(path: Path, text: str) -> Path:
    path.write_text(text + "\n", encoding="utf-8")
    return path


def test_words_tell_which_rule_decides_why_and_what_came_second(run):
    code, out, _ = run("test", "--say", "Build it.", "--say", "No, only touch the parser.", "--json")
    _, turn = json.loads(out)["talks"][0]["turns"]
    assert (code, turn["rule"], turn["kind"], turn["pin"]) == (0, "correction", "correction", True)
    assert "rule 'limit' (constraint, priority 81)" in turn["second"]


def test_a_question_of_the_assistant_counts_for_the_last_words(run):
    _, out, _ = run("test", "--say", "Build it.", "--say", "B", "--asked", "A) sqlite or B) postgres?")
    assert "turn 2: decision (pinned), by structure: option picked" in out


def test_a_file_of_sessions_is_tried_turn_by_turn(run, sessions):
    _, out, _ = run("test", sessions)
    assert 'turn 2 is superseded: "port 8080"' in out
    assert "interrupted" not in out


@pytest.mark.parametrize("form", ["body", "list", "lines"])
def test_a_transcript_is_read_as_body_list_or_lines(run, tmp_path, form):
    messages = [{"role": "user", "content": "Build it."}, {"role": "user", "content": "No, keep the API."}]
    text = {
        "body": json.dumps({"model": "m", "messages": messages}),
        "list": json.dumps(messages),
        "lines": "\n".join(json.dumps(message) for message in messages),
    }[form]
    _, out, _ = run("test", written(tmp_path / "talk.json", text), "--json")
    assert [turn["kind"] for turn in json.loads(out)["talks"][0]["turns"]] == ["goal", "correction"]


def test_a_stored_session_is_tried(run, tmp_path):
    key = load_key(key_path({"XDG_CONFIG_HOME": str(tmp_path / "config")}), {})
    store = Store.open(tmp_path / "data", Sealer(key))
    store.submit(asked(said("Build it."), said("No, keep the API."), session="S7", branch="B7")).result()
    store.close()
    code, out, err = run("test", "S7", "--json")
    assert (code, err) == (0, "")
    assert [turn["text"] for turn in json.loads(out)["talks"][0]["turns"]] == ["Build it.", "No, keep the API."]


def test_a_rule_file_is_tried_on_its_examples_and_a_wrong_one_is_told(run, tmp_path):
    rule = "rules:\n  - name: separators\n    kind: constraint\n    priority: 55\n    patterns: ['\\bsemicolons\\b']\n"
    good = written(
        tmp_path / "good.yaml", rule.replace("55", "86") + "    examples: {match: ['export with semicolons']}"
    )
    bad = written(tmp_path / "bad.yaml", rule + "    examples: {match: ['export the list with semicolons']}")
    assert run("test", good)[0] == 0
    code, out, _ = run("test", bad)
    assert code == 1
    assert f"{bad}:6:24: wrong: export the list with semicolons" in out
    assert "raise the priority" in out


def test_a_rule_can_be_tried_before_it_is_in_force(run, tmp_path):
    rule = "rules:\n  - {name: harbour, kind: fact, priority: 97, patterns: ['harbour']}"
    extra = written(tmp_path / "my.yaml", rule)
    _, out, _ = run("test", "--say", "Build it.", "--say", "thanks for the harbour", "--with", extra)
    assert "turn 2: fact (pinned), rule 'harbour'" in out


def test_predictions_have_a_line_for_each_user_turn(run, sessions):
    _, out, _ = run("predict", sessions)
    rows = [json.loads(line) for line in out.splitlines()]
    assert [row["turn_index"] for row in rows] == [0, 2, 3, 4, 5]
    assert rows[2] | {"labels": [], "pin": 0} == rows[2] | {"labels": [], "pin": 0, "supersedes": []}
    assert (rows[2]["labels"], rows[2]["pin"]) == (["injected"], False)
    assert (rows[3]["labels"], rows[3]["pin"], rows[3]["supersedes"]) == (["correction"], True, [2])


def test_a_score_tells_rates_by_label_language_client_and_part(run, sessions):
    _, out, _ = run("score", sessions, "--held-out", 2, "--json")
    found = json.loads(out)
    assert found["all"]["pins"] == {"precision": 1.0, "recall": 1.0, "f1": 1.0, "right": 3, "false": 0, "missed": 0}
    assert found["all"]["supersedes"]["right"] == 1
    assert found["all"]["clients"]["claude-code"]["right"] == 3
    assert found["held out"]["sessions"] + found["rest"]["sessions"] == 1
    assert found["errors"] == []


def test_the_worst_error_comes_first_with_its_place(run, sessions, tmp_path):
    rows = [{"session_id": "s1", "turn_index": 5, "labels": ["fact"], "pin": True}]
    guesses = written(tmp_path / "guesses.jsonl", "\n".join(json.dumps(row) for row in rows))
    _, out, _ = run("score", sessions, "--predictions", guesses)
    lines = [line for line in out.splitlines() if line.startswith(str(sessions))]
    assert lines[0].startswith(f"{sessions}:1: turn 0: core missed: goal → -")
    assert lines[-1].startswith(f"{sessions}:1: turn 5: wrongly pinned: chatter → fact")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "isn't JSON"),
        ("[]", "session_id"),
        ('{"session_id": "a", "turns": 3}', "turns: must be a list"),
        ('{"session_id": "a", "turns": [{"role": "user", "content": "x"}]}', "turns[0]: labels: is missing"),
        (
            '{"session_id": "a", "turns": [{"role": "user", "content": "x", "labels": ["no"]}]}',
            "labels: must be a list out of",
        ),
        ('{"session_id": "a", "turns": [{"role": "user", "content": "x", "labels": [], "pin": 1}]}', "pin: must be"),
        ('{"session_id": "a", "turns": []}\n{"session_id": "a", "turns": []}', "stands at"),
        ("", "holds no session"),
    ],
)
def test_what_is_wrong_with_sessions_is_told_with_file_and_line(run, tmp_path, line, words):
    path = written(tmp_path / "bad.jsonl", line)
    code, _, err = run("score", path)
    assert code == 2
    assert str(path) in err
    assert words in err


@pytest.mark.parametrize(
    "words", [("test",), ("test", "x.jsonl"), ("test", "x", "--say", "y"), ("score", "nowhere.jsonl")]
)
def test_wrong_usage_is_told(run, words):
    code, _, err = run(*words)
    assert code == 2
    assert err


def test_hostile_words_are_printed_escaped(run):
    _, out, _ = run("test", "--say", "Build it.\x1b[31m")
    assert "\x1b" not in out
