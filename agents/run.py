"""Runs one scenario with one agent: model, Goalkeeper, tap, and the agent in a home and a project of its own."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agents.install import node_folder
from agents.model import Got, Model
from agents.processes import ROOT, end, end_strays, goalkeeper, settings_free, start
from agents.runners.base import Agent, Environment, Place
from agents.script import Scenario
from agents.tap import Sent, Tap

_FILES = 8
_LINES = 140
_LINE_LIMIT = 16 << 20  # bytes of one line that an agent says
_QUIET_SECONDS = 1.0  # after a turn of a talk: agents compact at once or not at all


@dataclass(slots=True)
class Run:
    """All that was seen in a run."""

    sent: list[Sent] = field(default_factory=list)
    got: list[Got] = field(default_factory=list)
    exits: list[int] = field(default_factory=list)  # exit code of each turn, -1 for one that took too long
    output: str = ""
    facts: list[str] = field(default_factory=list)  # what Goalkeeper took for the user's binding words
    flags: set[str] = field(default_factory=set)  # on its receipts
    verified: bool = False  # what its `verify` says


async def run(agent: Agent, scenario: Scenario, cache: Path, keep: Path | None = None) -> Run:
    """Plays a scenario; `keep` is a folder for bodies and logs."""
    with tempfile.TemporaryDirectory(prefix="goalkeeper-agents-", ignore_cleanup_errors=True) as name:
        root = keep or Path(name)
        _empty(root)
        model = Model(scenario, agent.manner)
        settings = {"GOALKEEPER_ASSIST": "true"} if scenario.assists else {}
        async with model.serve() as upstream, goalkeeper(upstream, root, settings) as proxy:
            tap = Tap(proxy)
            async with tap.serve() as url:
                place = Place(root, cache, url)
                done = Run()
                try:
                    await _play(_Stage(agent, scenario, place, model, tap, done))
                finally:
                    end_strays(place.home)
                done.sent, done.got = tap.sent, model.got
                done.output = (root / "agent.log").read_text("utf-8", "replace")
                await asyncio.to_thread(_stored, done, root)
        if keep is not None:
            _write(done, keep)
        return done


@dataclass(frozen=True, slots=True)
class _Stage:
    agent: Agent
    scenario: Scenario
    place: Place
    model: Model
    tap: Tap
    done: Run

    @property
    def log(self) -> Path:
        return self.place.root / "agent.log"

    @property
    def environment(self) -> Environment:
        """Nothing of ours but the path; the home folder is the run's own."""
        home = self.place.home
        path = (
            f"{node_folder(self.place.cache)}{os.pathsep}" if any(one.new_node for one in self.agent.packages) else ""
        )
        common = {"HOME": str(home), "PATH": f"{path}{os.environ.get('PATH', '')}", "LANG": "C.UTF-8", "TERM": "dumb"}
        common |= {"XDG_CONFIG_HOME": f"{home}/.config", "XDG_DATA_HOME": f"{home}/.local/share"}
        common |= {"XDG_CACHE_HOME": f"{home}/.cache", "XDG_STATE_HOME": f"{home}/.local/state"}
        common |= {"DO_NOT_TRACK": "1", "NO_COLOR": "1", "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
        return common | self.agent.environment(self.place)


async def _play(stage: _Stage) -> None:
    _project(stage.place, stage.agent.project_rules)
    stage.log.touch()
    await asyncio.to_thread(stage.agent.setup, stage.place)
    if stage.scenario.steered or stage.agent.turn is None:
        await _talk(stage)
        return
    for number, words in enumerate(stage.scenario.said):
        stage.model.begin(number)
        command = stage.agent.turn(stage.place, number, words)
        process = await start(command, stage.place.project, stage.environment, stage.log)
        stage.done.exits.append(await _ended(process, stage.agent.seconds))


async def _ended(process: asyncio.subprocess.Process, seconds: float) -> int:
    try:
        code = await asyncio.wait_for(process.wait(), seconds)
    except TimeoutError:
        code = -1
    await end(process)
    return code


# --- talking while it works ------------------------------------------------------------------------------------------


async def _talk(stage: _Stage) -> None:
    """Says everything to one process; the interrupting words come while a command runs."""
    talk = stage.agent.talk
    if talk is None:
        raise RuntimeError(f"{stage.agent.name} can't be interrupted here")
    async with _lines(stage, talk.command(stage.place)) as (process, lines):

        def say(words: str, *, interrupts: bool = False) -> None:
            if process.stdin is not None:
                process.stdin.write(json.dumps(talk.say(words, interrupts)).encode() + b"\n")

        for number, words in enumerate(stage.scenario.said):
            stage.model.begin(number)
            say(words)
            if number == 0 and stage.scenario.steered:
                await asyncio.wait_for(stage.model.waiting.wait(), stage.agent.seconds)
                await asyncio.sleep(1)  # the command has to be running
                say(stage.scenario.steered, interrupts=True)
            await asyncio.wait_for(_turn_end(stage, lines), stage.agent.seconds)
            await asyncio.sleep(_QUIET_SECONDS)
            stage.done.exits.append(0)


@asynccontextmanager
async def _lines(
    stage: _Stage, command: list[str]
) -> AsyncIterator[tuple[asyncio.subprocess.Process, asyncio.Queue[bytes]]]:
    lines: asyncio.Queue[bytes] = asyncio.Queue()
    with stage.log.open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=stage.place.project,
            env=stage.environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
            start_new_session=True,
            limit=_LINE_LIMIT,
        )

        async def read() -> None:
            while process.stdout is not None and (line := await process.stdout.readline()):
                log.write(line)
                lines.put_nowait(line)

        reader = asyncio.create_task(read())
        try:
            yield process, lines
        finally:
            await end(process)
            await reader


async def _turn_end(stage: _Stage, lines: asyncio.Queue[bytes]) -> None:
    talk = stage.agent.talk
    while talk is not None:
        try:
            line = json.loads(await lines.get())
        except ValueError:
            continue
        if isinstance(line, dict) and talk.ended(line):
            return


# --- the project -----------------------------------------------------------------------------------------------------


def _empty(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)


def _project(place: Place, rules: str) -> None:
    """A small repository with bulky files and a file of rules for agents, which is no word of the user."""
    place.home.mkdir(parents=True, exist_ok=True)
    place.project.mkdir(parents=True, exist_ok=True)
    (place.project / rules).write_text("Project rule: run the tests with 'make check'.\n")
    (place.project / "app.py").write_text('def parse(line):\n    return line.split(",")\n')
    (place.project / "legacy.py").write_text("# legacy\n")
    for number in range(1, _FILES + 1):
        rows = (
            f"big{number} row {row:04d} | sensor={row * 37 % 101} value={row * number % 977} note=nothing of interest"
            for row in range(_LINES)
        )
        (place.project / f"big{number}.txt").write_text("\n".join(rows) + "\n")
    (place.home / ".gitconfig").write_text("[user]\n\tname = t\n\temail = t@example.invalid\n")
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "start"]):
        subprocess.run(["git", *command], cwd=place.project, env=os.environ | {"HOME": str(place.home)}, check=True)


def _stored(done: Run, root: Path) -> None:
    """Asks Goalkeeper's own commands what lies on disk."""

    def ask(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "proxy", "--data", str(root / "data"), *words, "--json"]
        return subprocess.run(
            command, cwd=ROOT, env=settings_free(root), capture_output=True, text=True, timeout=120, check=False
        )

    def listed(name: str, *more: str) -> list[dict[str, Any]]:
        told = ask(name, "list", *more)
        if told.returncode:
            raise RuntimeError(f"goalkeeper {name} list: {told.stderr.strip()[-300:]}")
        found: list[dict[str, Any]] = json.loads(told.stdout)[name]
        return found

    done.facts = [str(fact["text"]) for fact in listed("facts")]
    receipts = listed("receipts", "--limit", "0")
    done.flags = {flag for receipt in receipts for flag in receipt.get("flags", ())}
    done.verified = ask("verify").returncode == 0


def _write(done: Run, folder: Path) -> None:
    for sent in done.sent:
        (folder / f"{sent.number:03d}-sent{sent.path.replace('/', '_')}-{sent.status}.json").write_bytes(sent.raw)
    for place, got in enumerate(done.got):
        (folder / f"{got.number:03d}-got-{place:03d}-{got.kind}{'-refused' if got.refused else ''}.json").write_bytes(
            got.raw
        )
