"""A body is planned just as the running proxy would, and nothing is written."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from proxy.cli.main import main
from tests.builders import GOAL, SYSTEM, call, result, says, user
from tests.contract.world import World

HEADERS = (("authorization", "Bearer k1"),)
CORRECTION = "No, keep the old API."


def talk(steps: int) -> list[dict[str, Any]]:
    said = [SYSTEM, user(GOAL), says("Which API?"), user(CORRECTION), says("yes"), user("ok, go on")]
    for step in range(steps):
        said += [says("", call(f"c{step}", path=f"{step}.py")), result(f"c{step}", f"{step} \x1b[31m" + "word " * 700)]
    return said


def body(steps: int) -> bytes:
    return json.dumps({"model": "demo", "messages": talk(steps), "stream": False}).encode()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    written = tmp_path / "body.json"
    written.write_bytes(body(6))
    return written


def test_a_plan_says_what_is_pinned_digested_elided_and_kept(file, tmp_path, capsys):
    assert main(["--data", str(tmp_path / "none"), "plan", str(file), "--budget", "4000", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["dialect"], found["kind"], found["budget"]) == ("chat", "compaction", 4000)
    assert [(pin["kind"], pin["where"].split()[0]) for pin in found["pinned"]] == [
        ("goal", "in"),
        ("correction", "block"),
    ]
    assert [(entry["label"], entry["text"]) for entry in found["history"]] == [("approval", "ok, go on")]
    assert len(found["elided"]) + len(found["kept"]) == len(talk(6))
    assert found["tokens_out"] < 4000 < found["tokens_in"]
    assert not (tmp_path / "none").exists()
    assert main(["plan", str(file), "--budget", "4000"]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "elided: " in out


def test_a_plan_of_a_session_is_the_body_that_the_running_proxy_sends_next(tmp_path, capsysbinary, monkeypatch):
    data = tmp_path / "data"
    world = World(data, budget=4_000)
    try:
        assert world.send(body(6), HEADERS, says("", call("c6", path="6.py"))).receipt["compaction"] == "compaction"
        world.restart()
        before = world.files()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(body(7))))
        words = ["--data", str(data), "plan", "--session", "last", "--budget", "4000", "--body"]
        assert main(words) == 0
        out, error = capsysbinary.readouterr()
        assert error == b""
        assert world.files() == before
        done = world.send(body(7), HEADERS, says("done"))
        assert done.receipt["relation"] == "extends"
        assert out == done.forwarded
    finally:
        world.close()


@pytest.mark.parametrize(
    ("fields", "dialect"),
    [
        ({"messages": [user("hi")]}, "chat"),
        ({"input": "hi"}, "responses"),
        ({"system": "s", "messages": [user("hi")]}, "messages"),
        ({"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t"}]}]}, "messages"),
    ],
)
def test_the_dialect_is_told_by_the_bodys_keys(fields, dialect, tmp_path, capsys):
    file = tmp_path / "body.json"
    file.write_text(json.dumps({"model": "m", **fields}))
    assert main(["plan", str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["dialect"] == dialect


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["/nowhere.json"], "can't be read"),
        (["BODY", "--budget", "0"], "--budget must be"),
        (["BODY", "--path", "/v1/embeddings"], "must be one of /v1/chat/completions"),
        (["BODY", "--header", "nonsense"], "must be like"),
        (["BODY", "--dialect", "responses"], "no body of a model request"),
    ],
)
def test_wrong_use_is_told(words, told, file, capsys):
    assert main(["plan", *[str(file) if word == "BODY" else word for word in words]]) == 2
    assert told in capsys.readouterr().err
