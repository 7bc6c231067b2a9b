"""Facts on the command line: finding, changing, importing, promoting them, and looking into where they come from."""

from __future__ import annotations

import io
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proxy.cli.main import main
from proxy.redaction import Sealer
from proxy.store.keys import key_path, load_key
from proxy.store.sqlite import Store
from tests.store.build import asked, said, stated

Command = Callable[..., tuple[int, str, str]]
QUOTE = "No, never touch legacy/. password=hunter2-demo"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    key = load_key(key_path({"XDG_CONFIG_HOME": str(tmp_path / "config")}), {})
    store = Store.open(tmp_path / "data", Sealer(key))
    spoken = said(QUOTE)
    facts = (
        stated("p1", "Use tabs.", status="superseded", superseded_by="p2"),
        stated("p2", QUOTE, supersedes=("p1",), source={"session": "S1", "message": spoken.digest}),
        stated("p3", "設定は変更しないでください", kind="constraint"),
    )
    batch = asked(said("goal"), said("Shall I tidy up?", "assistant"), spoken, said("ok", "assistant"), facts=facts)
    store.submit(batch).result()
    store.close()
    return tmp_path / "data"


@pytest.fixture
def command(folder: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    def run(*words: str) -> tuple[int, str, str]:
        code = main(["--data", str(folder), *words])
        return code, *capsys.readouterr()

    return run


def found(command: Command, *words: str) -> list[str]:
    _, out, _ = command("facts", "search", *words, "--json")
    return [fact["pin"] for fact in json.loads(out)["facts"]]


def one(command: Command, name: str = "last") -> dict[str, Any]:
    return dict(json.loads(command("facts", "show", name, "--json")[1]))


def test_search_finds_beginnings_phrases_and_scripts_without_blanks_and_shows_tokens_only(command: Command) -> None:
    assert found(command, "LEGAC") == ["p2"]
    assert found(command, "touch never") == ["p2"]
    assert found(command, '"touch never"') == []
    assert found(command, "変更") == ["p3"]
    assert found(command, "hunter2") == []
    assert "hunter2" not in command("facts", "search", "legacy")[1]
    assert command("facts", "search", "--", "*-")[0] == 2


def test_facts_are_added_changed_and_retracted_each_as_an_event_and_both_views_follow(
    command: Command, folder: Path
) -> None:
    assert command("facts", "add", "Ship on Tuesdays", "--project", "shop", "--reason", "password=hunter3-demo")[0] == 0
    assert command("facts", "edit", "last", "--text", "Ship on Mondays", "--rejected", "Fridays")[0] == 0
    assert found(command, "mondays") == [one(command)["pin"]]
    assert found(command, "tuesdays") == []
    (page,) = (folder / "facts").glob("shop-*.md")
    assert "Ship on Mondays" in page.read_text()
    assert "turned down: Fridays" in page.read_text()
    assert command("facts", "retract", "last")[0] == 0
    fact = one(command)
    assert [event["what"] for event in fact["history"]] == ["added", "edited", "retracted"]
    lines = [json.loads(line) for line in page.with_suffix(".jsonl").read_text().splitlines()]
    assert [(line["what"], line["text"]) for line in lines][1:] == [
        ("edited", "Ship on Mondays"), ("retracted", "Ship on Mondays")
    ]  # fmt: skip
    assert "## No longer valid" in page.read_text()
    assert b"hunter3" not in b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file())


def test_what_people_changed_stays_when_the_session_says_it_again_and_retracting_ends_the_pin(
    command: Command, folder: Path
) -> None:
    name = next(
        fact["id"] for fact in json.loads(command("facts", "list", "--json")[1])["facts"] if fact["pin"] == "p3"
    )
    assert command("facts", "edit", name, "--kind", "decision", "--title", "config")[0] == 0
    assert command("facts", "retract", name)[0] == 0
    store = Store.open(folder, Sealer(None))
    assert [(edit.action, edit.pin) for edit in store.pin_edits("S1")] == [("retract", "p3")]
    store.submit(asked(facts=(stated("p3", "設定は変更しないでください", kind="constraint"),))).result()
    store.close()
    fact = one(command, name)
    assert (fact["kind"], fact["title"], fact["status"], len(fact["history"])) == ("decision", "config", "retracted", 3)


def test_a_newer_fact_replaces_an_older_one(command: Command) -> None:
    command("facts", "add", "Use blanks", "--supersedes", one(command)["id"], "--session", "S1")
    newer = one(command)
    assert newer["project"] == "/srv/shop"
    older = one(command, newer["supersedes"])
    assert (older["status"], older["superseded_by"]) == ("superseded", newer["id"])


def test_why_shows_the_words_in_their_surroundings_and_what_they_replaced(command: Command) -> None:
    name = next(
        fact["id"] for fact in json.loads(command("facts", "list", "--json")[1])["facts"] if fact["pin"] == "p2"
    )
    told = json.loads(command("why", name, "--json")[1])
    around = told["surroundings"]
    assert (around["before"]["text"], around["after"]["text"]) == ("Shall I tidy up?", "ok")
    assert around["said"]["text"].startswith("No, never touch legacy/. password=[secret:")
    assert [old["text"] for old in told["replaced"]] == ["Use tabs."]
    assert "replaced: " in command("why", name)[1]
    command("facts", "edit", name, "--text", "legacy/ is read-only")
    assert command("why", name)[1].count("No, never touch legacy/. password=[secret:") == 1
    (pin,) = [pin for pin in json.loads(command("pins", "list", "--json")[1])["pins"] if pin["id"] == "p2"]
    assert pin["text"].startswith("No, never touch legacy/.")


def test_broken_lines_are_named_and_nothing_is_half_imported(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "facts.jsonl"
    file.write_text(
        '{"text":"Deploy on Mondays","kind":"constraint"}\n{"text":3}\nnot json\n{"text":"x","kind":"law"}\n'
    )
    code, out, error = command("facts", "import", str(file))
    assert code == 1
    assert [line.split(": ")[0] for line in error.splitlines()] == [f"{file}:{number}" for number in (2, 3, 4)]
    assert "nothing was imported" in out
    assert found(command, "mondays") == []
    assert (
        command("facts", "import", str(file), "--skip-broken")[1]
        == "imported 1, known already 0, left out as broken 3\n"
    )
    assert json.loads(command("facts", "import", str(file), "--skip-broken", "--json")[1])["known"] == 1


def test_an_export_is_imported_into_another_folder_once(
    command: Command, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    exported = command("facts", "export")[1]
    Store.open(tmp_path / "other", Sealer(None)).close()
    for told in ("imported 3, known already 0\n", "imported 0, known already 3\n"):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(exported.encode())))
        assert main(["--data", str(tmp_path / "other"), "facts", "import", "-"]) == 0
        assert capsys.readouterr().out == told


def test_facts_are_promoted_into_a_repository_with_consent_and_once(command: Command, tmp_path: Path) -> None:
    command("facts", "add", "Ship on Tuesdays", "--project", "shop")
    name, repository = one(command)["id"], tmp_path / "repository"
    repository.mkdir()
    words = ("facts", "promote", name, "--to", "context", str(repository))
    code, out, _ = command(*words)
    assert (code, list(repository.iterdir())) == (0, [])
    assert "+Ship on Tuesdays" in out
    assert one(command)["promoted"] == ""
    assert command(*words, "--write")[0] == 0
    written = {file.name: file.read_text() for file in (repository / "context").iterdir()}
    assert sorted(written) == ["README.md", "decisions.md", "index.md"]
    assert one(command)["promoted"]
    assert command(*words, "--write")[1] == f"{name}: unchanged\n"
    assert {file.name: file.read_text() for file in (repository / "context").iterdir()} == written
    verbatim = next(f["id"] for f in json.loads(command("facts", "list", "--json")[1])["facts"] if f["pin"] == "p3")
    assert command("facts", "promote", verbatim, "--to", "agents", str(repository), "--write")[0] == 2
    (repository / "AGENTS.md").write_text(
        "<!-- keep-the-why:config -->\ncontext-schema: 1.0\n<!-- /keep-the-why:config -->"
    )
    assert "newer than this writer" in command(*words, "--write")[2]


def test_facts_whose_files_have_changed_in_a_checkout_are_stale(command: Command, tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    (checkout / "legacy").mkdir(parents=True)

    def git(*words: str) -> str:
        who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
        done = subprocess.run(["git", *who, "-C", str(checkout), *words], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    git("init", "-q", "-b", "main")
    (checkout / "legacy" / "a.py").write_text("1")
    (checkout / "money.py").write_text("1")
    git("add", "-A")
    git("commit", "-qm", "one")
    known = {"kind": "constraint", "project": str(checkout), "source": {"git_commit": git("rev-parse", "HEAD")}}
    lines = [
        json.dumps(known | {"text": text}) for text in ("Keep legacy/ as it is.", "Use Decimal in money.py", "Ship")
    ]
    file = tmp_path / "facts.jsonl"
    file.write_text("\n".join([*lines, json.dumps(known | {"text": "Old", "revisit": "2026-01-01", "source": {}})]))
    assert command("facts", "import", str(file))[0] == 0
    told = json.loads(command("facts", "stale", str(checkout), "--json")[1])
    assert [(fact["text"], fact["why"]) for fact in told["facts"]] == [
        ("Old", "to be looked at again since 2026-01-01")
    ]
    (checkout / "money.py").write_text("2")
    git("commit", "-qam", "two")
    told = json.loads(command("facts", "stale", str(checkout), "--json")[1])
    assert [fact["why"] for fact in told["facts"]] == [
        "changed: money.py", "HEAD is 1 commits further", "to be looked at again since 2026-01-01"
    ]  # fmt: skip
    assert command("facts", "stale", str(tmp_path))[0] == 2


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("facts", "add", " "), 2),
        (("facts", "edit", "last"), 2),
        (("facts", "edit", "nothing", "--kind", "goal"), 1),
        (("facts", "import", "/nowhere/at/all"), 2),
        (("facts", "promote", "last", "--to", "wiki", "."), 2),
        (("facts", "stale", "/nowhere"), 2),
        (("facts", "forget", "--pattern", "("), 2),
        (("facts", "forget", "--pattern", "x*"), 2),
        (("facts", "forget", "--session", "nothing"), 1),
        (("why", "nothing"), 1),
    ],
)
def test_wrong_use_is_told(command: Command, words: tuple[str, ...], code: int) -> None:
    told, _, error = command(*words)
    assert told == code
    assert error
