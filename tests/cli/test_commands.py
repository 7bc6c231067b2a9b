"""Commands that read and change what is stored."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from proxy.cli.main import main
from proxy.compaction.insertion import Insertion
from proxy.compaction.receipt import Receipt
from proxy.redaction import Sealer
from proxy.store.keys import key_path, load_key
from proxy.store.rows import Batch
from proxy.store.sqlite import Store
from tests.store.build import asked, said, stated

Command = Callable[..., tuple[int, str, str]]
GOAL = said("Goal: shop. password=hunter2-demo")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder with two sessions, and the key where commands look for it."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    key = load_key(key_path({"XDG_CONFIG_HOME": str(tmp_path / "config")}), {})
    data = tmp_path / "data"
    store = Store.open(data, Sealer(key))
    store.submit(asked(said("hi"), session="A1", branch="BA")).result()
    block = Insertion(
        "i1b2c3",
        "BB",
        0,
        1,
        "",
        "message",
        "text",
        "compaction",
        tokens=9,
        pin_tokens=4,
        log_tokens=5,
        covers=(GOAL.digest,),
    )
    facts = (stated("p1", "Use \x1b[31mtabs", session="S2"), stated("p2", "Be brief.", session="S2", kind="preference"))
    store.submit(asked(GOAL, said("go"), session="S2", branch="BB", insertions=(block,), facts=facts)).result()
    store.close()
    return data


@pytest.fixture
def command(folder: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs a command on the folder: exit code, output, error output."""

    def run(*words: str) -> tuple[int, str, str]:
        code = main(["--data", str(folder), *words])
        return code, *capsys.readouterr()

    return run


def test_facts_are_listed_filtered_and_shown_with_history(command: Command) -> None:
    _, out, _ = command("facts", "list", "--json", "--kind", "preference", "--session", "S")
    (fact,) = json.loads(out)["facts"]
    assert fact["text"] == "Be brief."
    _, out, _ = command("facts", "show", fact["id"][:25] + fact["id"][25], "--json")
    assert json.loads(out)["history"][0]["what"] == "new"
    _, out, _ = command("facts", "export", "--project", "/srv/shop")
    assert [json.loads(line)["pin"] for line in out.splitlines()] == ["p1", "p2"]


def test_control_characters_of_stored_words_reach_no_terminal(command: Command) -> None:
    code, out, _ = command("facts", "list")
    assert code == 0
    assert "\x1b" not in out
    assert "\\x1b[31mtabs" in out


def test_pins_are_added_closed_and_retracted_for_the_next_request(command: Command, folder: Path) -> None:
    assert command("pins", "add", "last", "Never push.", "--kind", "constraint")[0] == 0
    assert command("pins", "close", "p1", "--json")[0] == 0
    assert command("pins", "retract", "p2")[0] == 0
    store = Store.open(folder, Sealer(None))
    edits = store.pin_edits("S2")
    assert [(edit.action, edit.pin, edit.text) for edit in edits] == [
        ("add", "", "Never push."),
        ("close", "p1", ""),
        ("retract", "p2", ""),
    ]
    store.close()
    _, out, _ = command("pins", "list", "--json")
    assert [pin["id"] for pin in json.loads(out)["pins"]] == ["p1", "p2"]


def test_session_shows_branches_and_transcript_with_masked_values(command: Command) -> None:
    _, out, _ = command("sessions", "list", "--json")
    assert [(one["id"], one["requests"]) for one in json.loads(out)["sessions"]] == [("A1", 1), ("S2", 1)]
    _, out, _ = command("sessions", "show", "last", "--json")
    session = json.loads(out)
    assert session["branches"] == [{"id": "BB", "kind": "main", "parent": "", "epoch": 0}]
    assert [message["role"] for message in session["transcript"]] == ["user", "user"]
    assert "hunter2-demo" not in out


def test_receipts_are_listed_newest_last_with_every_field(command: Command) -> None:
    _, out, _ = command("receipts", "list", "--json")
    receipts = json.loads(out)["receipts"]
    assert [one["session"] for one in receipts] == ["A1", "S2"]
    assert receipts[1]["flags"] == []
    _, out, _ = command("receipts", "show", "last", "--json")
    assert json.loads(out) == receipts[1]


@pytest.mark.parametrize("name", [GOAL.digest, GOAL.digest[:12], "i1b2c3"])
def test_archive_gives_back_what_an_id_stands_for(command: Command, name: str) -> None:
    _, out, _ = command("archive", "show", name, "--json")
    shown = json.loads(out)
    assert (shown["id"], shown["role"]) == (GOAL.digest, "user")
    assert shown["text"].startswith("Goal: shop. password=[secret:password:")
    _, raw, _ = command("archive", "show", name, "--raw")
    assert "Goal: shop. password=hunter2-demo" in raw


def test_context_counts_tokens_by_what_they_are(command: Command, folder: Path) -> None:
    store = Store.open(folder, Sealer(None))
    receipt = Receipt(
        "7ZZZ", "", session="S2", branch="BB", track="BB", messages=2, insertions=("i1b2c3",), budget=100, tokens_out=40
    )
    store.submit(Batch(tenant="t1", receipt=receipt)).result()
    store.close()
    _, out, _ = command("context", "S2", "--json")
    assert {name: value for name, value in json.loads(out).items() if isinstance(value, int)} == {
        "budget": 100, "forwarded": 40, "pinned": 4, "digested": 5, "kept": 31, "elided": 7, "free": 60
    }  # fmt: skip


def test_verify_finds_nothing_wrong_in_a_sound_store(command: Command) -> None:
    code, out, _ = command("verify", "--json")
    assert (code, json.loads(out)) == (0, {"receipts": 2, "rebuilt": 2, "exact": 0, "problems": []})


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("sessions", "show", "nothing"), 1),
        (("facts", "show", ""), 1),
        (("archive", "show", "ffff"), 1),
        (("pins", "close", "p"), 2),
        (("pins", "add", "last", " "), 2),
    ],
)
def test_exit_code_tells_not_found_from_wrong_use(command: Command, words: tuple[str, ...], code: int) -> None:
    found, out, error = command(*words)
    assert (found, out) == (code, "")
    assert error


def test_folder_without_a_store_is_told_as_such(tmp_path: Path) -> None:
    assert main(["--data", str(tmp_path), "sessions", "list"]) == 1


def test_command_runs_as_a_process_of_its_own(folder: Path) -> None:
    root = Path(__file__).parents[2]
    words = [sys.executable, "-m", "proxy", "--data", str(folder), "pins", "list", "--json"]
    done = subprocess.run(words, cwd=root, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert [pin["id"] for pin in json.loads(done.stdout)["pins"]] == ["p1", "p2"]
