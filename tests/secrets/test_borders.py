"""No secret value lies readable in any file, log line, page or output, wherever it came from."""

from __future__ import annotations

import json
import sqlite3
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from proxy.cli.main import main
from tests.builders import call, result, says, step, steps, user
from tests.fake_model import FakeModel, Reply, Seen, chat_reply
from tests.secrets.corpus import secrets
from tests.serving import Serving, serving

CHAT, MESSAGES, RESPONSES = "/v1/chat/completions", "/v1/messages", "/v1/responses"
KINDS = {one.kind: one for one in secrets(seed=11)}
BASIC = b64encode(b"deploy:tulip-9931-bed").decode()
DOORS = (
    f"/admin/facts/{KINDS['github_classic'].secrets[0]}",
    "/metrics",
    "/readyz",
    "/admin/facts",
    "/admin/sessions",
    "/admin/receipts",
    "/admin/pins",
    "/admin/stats",
)
COMMANDS = (
    *(("facts", "list"), ("facts", "export"), ("facts", "show", "last"), ("pins", "list"), ("sessions", "list")),
    *(("sessions", "show", "last"), ("receipts", "list"), ("receipts", "show", "last"), ("archive", "show", "last")),
    *(("context",), ("verify",), ("archive", "show", "password=sunflower-77-x")),
)


def one(kind: str) -> str:
    return KINDS[kind].text


def values() -> list[str]:
    """Every secret that was said, also as JSON spells it and in Basic's base64."""
    told = [value for kind in PLACES.values() for name in kind for value in KINDS[name].secrets]
    told += [BASIC, "header-tok3n-4711-abcdef", "sunflower-77-x", "tulip-9931-bed"]
    pieces = [line for value in told for line in value.split("\n") if len(line) > 5]
    return sorted({spelled for piece in pieces for spelled in (piece, json.dumps(piece)[1:-1])})


PLACES = {
    "system": ("anthropic_api", "env_line"),
    "user": ("github_classic", "prose_en", "yaml_password", "prose_zh"),
    "argument": ("curl_user", "aws_secret_env", "bearer"),
    "output": ("pem_rsa", "jwt", "cookie", "postgres_url", "json_client_secret", "seed_phrase"),
    "answer": ("stripe_live", "slack_bot"),
    "error": ("openai_project",),
}


def texts(place: str) -> str:
    return "\n".join(one(kind) for kind in PLACES[place])


def answered(seen: Seen) -> Reply:
    """Says what it shouldn't, or refuses in words that quote the key."""
    if b"be refused" in seen.body:
        told = {"error": {"message": f"Incorrect API key provided: {texts('error')}", "code": "invalid_api_key"}}
        return Reply(401, body=json.dumps(told).encode())
    if seen.path == MESSAGES:
        block = {"type": "text", "text": texts("answer")}
        body: dict[str, Any] = {"id": "msg_1", "type": "message", "role": "assistant", "content": [block]}
        return Reply(body=json.dumps(body | {"stop_reason": "end_turn", "usage": {"input_tokens": 9}}).encode())
    if seen.path == RESPONSES:
        item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": texts("answer")}]}
        return Reply(body=json.dumps({"id": "resp_1", "status": "completed", "output": [item]}).encode())
    return chat_reply(texts("answer"), {"prompt_tokens": 900, "completion_tokens": 9})


def talk() -> list[dict[str, Any]]:
    asked = call("call_1_ab12cd", "bash", cmd=texts("argument") + f" -H 'Authorization: Basic {BASIC}'")
    return [
        user(f"Set up the shop.\n{texts('user')}"),
        says(f"I will.\n{texts('answer')}", asked),
        result("call_1_ab12cd", texts("output") + "\nerror: login failed for deploy:tulip-9931-bed at line 3"),
        user(f"No, use this password instead: `sunflower-77-x`, and go on.\n{texts('user')}"),
        says("Done. Which of the two do you want, A or B?"),
        user("A"),
    ]


async def talked(proxy: Serving) -> None:
    """Leads the same talk in each dialect, with errors, and with secrets in headers and addresses."""
    headers = {"Authorization": "Bearer header-tok3n-4711-abcdef", "x-goalkeeper-project": "p password=sunflower-77-x"}
    headers["x-goalkeeper-session"] = "s password=sunflower-77-x"
    await proxy.ask(
        CHAT, {"model": "demo", "messages": [{"role": "system", "content": texts("system")}, *talk()]}, headers
    )
    blocks = [
        {"role": one["role"], "content": one["content"]} for one in talk() if one["role"] in ("user", "assistant")
    ]
    await proxy.ask(
        MESSAGES, {"model": "demo", "max_tokens": 99, "system": texts("system"), "messages": blocks}, headers
    )
    items = [{"type": "message", **block} for block in blocks]
    await proxy.ask(RESPONSES, {"model": "demo", "instructions": texts("system"), "input": items}, headers)
    status, _ = await proxy.ask(CHAT, {"model": "demo", "messages": [user(f"be refused {texts('user')}")]}, headers)
    assert status == 401
    await proxy.ask("/v1/embeddings?key=header-tok3n-4711-abcdef", {"input": texts("user")}, headers)
    await proxy.ask("/v1/files/" + KINDS["github_classic"].secrets[0], {}, headers)
    await proxy.ask(CHAT, {"model": KINDS["stripe_live"].secrets[0], "messages": [{"role": "user"}, 7]}, headers)


def readable(folder: Path) -> Iterator[tuple[str, bytes]]:
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            yield file.name, file.read_bytes()


async def test_no_secret_value_is_readable_on_disk_in_logs_pages_or_outputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    folder = tmp_path / "data"
    async with FakeModel(answered) as model, serving(folder, model.url, budget=3000) as proxy:
        await talked(proxy)
        pages = [(door, (await proxy.get(door)).encode()) for door in DOORS]
    sent = b"".join(seen.body for seen in model.seen).decode()
    assert KINDS["github_classic"].secrets[0] in sent  # the model still gets what was written
    capfd.readouterr()
    outputs = []
    for words in COMMANDS:
        for json_flag in ((), ("--json",)) if words[1:2] != ("export",) else ((),):
            main(["--data", str(folder), *words, *json_flag])
            shown = capfd.readouterr()
            outputs.append((" ".join(words), (shown.out + shown.err).encode()))
    places = [*readable(folder), ("log", proxy.log.getvalue().encode()), *pages, *outputs]
    leaks = [f"{value!r} in {name}" for name, data in places for value in values() if value.encode() in data]
    assert leaks == []
    facts = next(data for name, data in places if name == "facts list")
    assert b"use this password instead" in facts.replace(b"\\n", b" ")


async def test_with_the_key_every_byte_of_a_message_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    folder = tmp_path / "data"
    async with FakeModel(answered) as model, serving(folder, model.url, redaction={"people": True}) as proxy:
        said = user(f"write to bob@acme.test or +49 151 2345 6789\n{texts('output')}")
        await proxy.ask(CHAT, {"model": "demo", "messages": [said]}, {})
    stored = b"".join(data for _, data in readable(folder))
    assert b"bob@acme.test" not in stored
    assert b"2345 6789" not in stored
    capfdbinary.readouterr()
    db = sqlite3.connect(folder / "goalkeeper.db")
    (digest,) = db.execute("SELECT digest FROM messages WHERE role = 'user'").fetchone()
    db.close()
    assert main(["--data", str(folder), "archive", "show", digest, "--raw"]) == 0
    assert json.loads(capfdbinary.readouterr().out) == said
    assert main(["--data", str(folder), "verify"]) == 0


async def test_a_summariser_reads_tokens_in_place_of_secret_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    summarizer = {"when": "inline", "model": "small"}
    async with FakeModel() as model, serving(tmp_path, model.url, budget=2500, summarizer=summarizer) as proxy:
        talk = [user("Port it."), *step(1, texts("output") + " row" * 900), *step(2, texts("argument") + " row" * 900)]
        await proxy.ask(CHAT, {"model": "demo", "messages": talk}, {})
        await proxy.ask(CHAT, {"model": "demo", "messages": [*talk, *steps(3, 6, 2000), user("go on")]}, {})
    asked = [seen.body.decode() for seen in model.seen if seen.json()["model"] == "small"]
    assert asked
    assert "[secret:jwt:" in asked[0]
    assert [value for value in values() if value in asked[0]] == []


@pytest.mark.parametrize("words", [("check",), ("check", "--json"), ("facts", "list"), ("serve",)])
def test_a_wrong_setting_is_told_without_the_password_in_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    file = tmp_path / "goalkeeper.yaml"
    file.write_text("upstream: {url: 'https://app:sunflower-77-x@api.test'}")
    assert main(["--config", str(file), *words]) > 0
    shown = capsys.readouterr()
    assert "clients bring their own credentials" in shown.out + shown.err
    assert "sunflower-77-x" not in shown.out + shown.err
