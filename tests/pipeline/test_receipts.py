"""What a real proxy's receipts bear out afterwards: bodies byte for byte, mended ones too, and tool output left out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from proxy.cli.main import main
from proxy.store.schema import attach
from tests.builders import GOAL, SYSTEM, call, result, says, user
from tests.contract.world import World

HEADERS = (("authorization", "Bearer k1"),)


@pytest.fixture
def worlds(tmp_path: Path) -> Iterator[Any]:
    made: list[World] = []

    def world(**settings: Any) -> World:
        made.append(World(tmp_path / "data", **settings))
        return made[-1]

    yield world
    for one in made:
        one.close()


def body(*messages: dict[str, Any]) -> bytes:
    return json.dumps({"model": "demo", "messages": [SYSTEM, *messages], "stream": False}).encode()


def talk(steps: int, size: int = 3_000) -> list[dict[str, Any]]:
    talk = [user(GOAL)]
    for step in range(steps):
        talk += [says("", call(f"c{step}", path=f"{step}.py")), result(f"c{step}", f"{step} " + "x" * size)]
    return talk


def asked(world: World, capsysbinary: pytest.CaptureFixture[bytes], *words: str) -> tuple[int, bytes]:
    """Runs a command on the data folder, with its key."""
    code = main(["--data", str(world.folder), *words])
    return code, capsysbinary.readouterr().out


def test_every_body_is_rebuilt_from_the_command_line_and_a_changed_one_is_noticed(worlds, capsysbinary):
    world = worlds(budget=4_000)
    done = [world.send(body(*talk(steps)), HEADERS, says("go on")) for steps in (1, 6, 7)]
    assert done[1].receipt["compaction"] == "compaction"
    for one in done:
        name = one.receipt["id"]
        assert asked(world, capsysbinary, "receipts", "replay", name, "--body") == (0, one.forwarded)
    _, out = asked(world, capsysbinary, "receipts", "diff", name, "--json")
    changes = json.loads(out)["changes"]
    assert {change["what"] for change in changes} == {"added", "removed"}
    assert [change["role"] for change in changes if change["what"] == "added"] == ["user"]
    _, out = asked(world, capsysbinary, "receipts", "diff", done[1].receipt["id"], name)
    assert b" as sent: " in out
    assert b"\n+    " in out
    db = attach(world.folder)
    db.execute("UPDATE messages SET body = replace(body, 'Port the', 'Post the')")
    db.close()
    code, out = asked(world, capsysbinary, "receipts", "replay", "last")
    assert code == 1
    assert b"same: false" in out
    assert any("bytes" in problem.text for problem in world.problems())


def test_a_mended_body_is_verified_as_it_was_sent(worlds, capsysbinary):
    world = worlds(repair={"orphan_tool_results": "to_text"})
    done = world.send(body(user(GOAL), result("c9", "42 rows"), user("and now?")), HEADERS, says("ok"))
    assert "orphan_repaired" in done.flags
    assert b'"role":"tool"' not in done.forwarded.replace(b" ", b"")
    assert world.problems() == ()
    assert asked(world, capsysbinary, "receipts", "replay", "last", "--body") == (0, done.forwarded)


def test_the_trail_names_each_call_and_its_outcome_unless_told_to_leave_that_out(worlds, capsysbinary):
    world = worlds(receipts={"tool_output": False})
    made = says("", call("c0", "run", command="make"))
    world.send(body(user(GOAL)), HEADERS, made)
    world.send(body(user(GOAL), made, result("c0", "Exit code 2\nno rule")), HEADERS, says("I see."))
    _, out = asked(world, capsysbinary, "receipts", "trail", "--json")
    rows = json.loads(out)["trail"]
    assert [row["what"] for row in rows] == ["request", "call", "request"]
    assert rows[1]["name"] == "run"
    assert rows[1]["outcome"] == ""
    assert rows[1]["brought_in"] == rows[2]["receipt"]
    assert rows[1]["ms"] >= 0
    _, out = asked(world, capsysbinary, "receipts", "trail", "--limit", "2")
    assert out.count(b"\n") == 3


def test_a_side_call_that_keeps_no_messages_is_told_as_such(worlds, capsysbinary):
    world = worlds()
    title = json.dumps(
        {"model": "m", "stream": False, "messages": [SYSTEM, user("Write a title for this")], "max_tokens": 16}
    )
    assert world.send(title.encode(), HEADERS, says("Title")).receipt["relation"] == "side"
    assert main(["--data", str(world.folder), "receipts", "replay", "last"]) == 1
    assert b"side call" in capsysbinary.readouterr().err
