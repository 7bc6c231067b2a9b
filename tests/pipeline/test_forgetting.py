"""Forgetting on a person's order while a proxy runs: what went is in no file, and memory doesn't bring it back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from proxy.cli.main import main
from tests.builders import SYSTEM, body, call, result, says, user
from tests.contract.world import Done, World
from tests.running import KEY

MARK = "Zürich-Projekt-Quokka"
HEADERS = (("x-goalkeeper-project", "shop"), ("x-session-id", "one"))


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    key = tmp_path / "config" / "goalkeeper" / "seal.key"
    key.parent.mkdir(parents=True)
    key.write_text(KEY.hex())
    made = World(tmp_path / "data", budget=2_000, tenant="none")
    yield made
    made.close()


Forget = Callable[..., int]


@pytest.fixture
def forget(world: World) -> Forget:
    return lambda *words: main(["--data", str(world.folder), "facts", "forget", *words])


def ask(world: World, *messages: object, answer: object = None) -> Done:
    said = answer or says("I begin with the ledger module and its tests, then the others.")
    return world.send(body(SYSTEM, *messages, stream=False), HEADERS, said)


def worked(world: World, *, goal: str = "Port the billing service to Go.", told: str = MARK) -> list[object]:
    """A session with a compaction; `told` stands in arguments, result, answer, a secret value and a correction."""
    talk: list[object] = [user(goal)]
    for number in range(6):
        asked = says(f"Now {told}, module {number}.", call(f"c{number}", path=f"src/{told}/{number}.py"))
        ask(world, *talk, answer=asked)
        talk += [asked, result(f"c{number}", f"{told} password={told}-9x8y7z {'row of the table ' * 60}")]
        talk += [user(f"No, never touch {told} in module {number}, use the copy.")]
    ask(world, *talk)
    return talk


def test_a_pattern_goes_from_every_file_and_what_is_left_can_be_checked(world, forget, capsys):
    worked(world)
    world.problems()
    assert MARK in world.files().decode("utf-8", "replace")
    assert forget("--pattern", MARK) == 0
    assert "add --yes" in capsys.readouterr().out
    assert MARK in world.files().decode("utf-8", "replace")
    assert forget("--pattern", MARK, "--yes") == 0
    assert "no file of the data folder holds it" in capsys.readouterr().out
    left = world.files().decode("utf-8", "replace").casefold()
    assert "quokka" not in left
    assert "port the billing service" in left
    assert world.problems() == ()
    world.restart()
    assert "quokka" not in world.files().decode("utf-8", "replace").casefold()


def test_a_pattern_that_stands_in_our_own_words_breaks_nothing(world, forget, capsys):
    worked(world)
    world.problems()
    assert forget("--pattern", "e|main", "--yes") == 1
    assert "still there, in names or ids that are kept" in capsys.readouterr().out
    assert world.problems() == ()
    for words in (["sessions", "show", "last"], ["receipts", "show", "last"], ["context"], ["facts", "list"]):
        assert main(["--data", str(world.folder), *words]) == 0
    world.restart()
    assert ask(world, user("Port the billing service to Go.")).receipt["relation"] == "new"


def test_a_session_goes_whole_and_memory_does_not_bring_it_back(world, forget, capsys):
    talk = worked(world)
    session = ask(world, *talk, user("Go on.")).receipt["session"]
    assert forget("--session", session, "--yes", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["done"], told["sessions"]) == (True, [session])
    assert "quokka" not in world.files().decode("utf-8", "replace").casefold()
    # the client has compacted: what it cut off would come back from memory alone
    done = ask(world, user("Summary: the modules were read."), user("Go on, please."))
    assert done.receipt["session"] != session
    assert "quokka" not in done.forwarded.decode().casefold()
    assert world.problems() == ()
    world.restart()
    assert "quokka" not in world.files().decode("utf-8", "replace").casefold()


def test_words_of_tools_go_and_the_conversation_keeps_its_pins(world, forget):
    talk = [user("Port the billing service to Go.")]
    for number in range(8):
        asked = says(f"Module {number} is next.", call(f"c{number}", path=f"{number}.py"))
        ask(world, *talk, answer=asked)
        talk += [asked, result(f"c{number}", f"token {MARK} {'row of the table ' * 60}")]
    session = ask(world, *talk).receipt["session"]
    assert forget("--pattern", MARK, "--yes") == 0
    done = ask(world, user("Summary: the modules were read."), user("Go on, please."))
    assert done.receipt["session"] == session
    assert "Port the billing service to Go." in done.forwarded.decode()


def test_a_project_goes_with_the_views_of_its_facts(world, forget):
    worked(world)
    world.restart()
    assert len(list((world.folder / "facts").glob("shop-*"))) == 2
    assert forget("--project", "shop", "--yes") == 0
    assert list((world.folder / "facts").glob("shop-*")) == []
    assert "quokka" not in world.files().decode("utf-8", "replace").casefold()
