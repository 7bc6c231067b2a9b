"""Starts, stops and kills real proxy processes, each run in folders of its own."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.cases.evidence import Start

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 30.0
STOP_SECONDS = 8.0
_LISTENING = re.compile(rb"listening on http://\S*:(\d+)")


@dataclass(frozen=True, slots=True)
class Place:
    """The folders of one run. The data folder lies deep, so that a path that climbs out still lands in `root`."""

    root: Path

    @property
    def work(self) -> Path:
        """The working directory of the processes."""
        return self.root / "a" / "b" / "work"

    @property
    def home(self) -> Path:
        """The home folder of the processes."""
        return self.root / "a" / "home"

    def data(self, number: int) -> Path:
        """The data folder number n; processes that share one share the number."""
        return self.root / "a" / "b" / "c" / f"data-{number}"

    def make(self) -> None:
        """Creates the folders."""
        for folder in (self.work, self.home, self.root / "tmp", self.root / "config", self.root / "log"):
            folder.mkdir(parents=True, exist_ok=True)

    def environment(self) -> dict[str, str]:
        """Gives the environment of the processes: ours, without settings of the proxy, at home in these folders."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("GOALKEEPER_", "XDG_"))}
        return kept | {"PYTHONPATH": str(ROOT), "HOME": str(self.home), "TMPDIR": str(self.root / "tmp")}

    def strays(self) -> list[str]:
        """Gives the files outside the data folders that nobody asked for; the sealing key lies apart on purpose."""
        expected = (self.root / "config", self.root / "log", self.home / ".config" / "goalkeeper", self.data(0).parent)
        files = [path for path in self.root.rglob("*") if path.is_file()]
        inside = self.data(0).parent
        return [
            str(path.relative_to(self.root))
            for path in files
            if not any(path.is_relative_to(folder) for folder in expected)
            or (path.is_relative_to(inside) and not path.relative_to(inside).parts[0].startswith("data-"))
        ]


@dataclass(slots=True)
class Proxy:
    """A running proxy process."""

    process: asyncio.subprocess.Process
    port: int
    data: Path
    config: Path
    token: str = ""
    doomed: bool = False  # a signal to end was sent: the exit code comes a moment later
    log: bytearray = field(default_factory=bytearray)
    readers: list[asyncio.Task[None]] = field(default_factory=list)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def alive(self) -> bool:
        """Whether the process runs and wasn't told to end."""
        return self.process.returncode is None and not self.doomed

    async def kill(self, name: str = "KILL") -> None:
        """Sends a signal and waits for the end."""
        if self.alive:
            self.doomed = True
            self.process.send_signal(signal.Signals[f"SIG{name}"])
        await self._end()

    async def stop(self) -> None:
        """Asks the process to end; kills it when it doesn't."""
        await self.kill("TERM")

    async def _end(self) -> None:
        try:
            await asyncio.wait_for(self.process.wait(), STOP_SECONDS)
        except TimeoutError:
            self.process.kill()
            await self.process.wait()
        for reader in self.readers:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(reader, 1.0)


async def launch(place: Place, settings: Mapping[str, Any], number: int) -> Proxy | Start:
    """Starts a proxy with these settings; gives what it said when it ended instead of listening."""
    config = place.root / "config" / f"goalkeeper-{number}.yaml"
    config.write_text(json.dumps(settings, ensure_ascii=False, indent=1), encoding="utf-8")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "proxy", "serve", "--config", str(config), "--port", "0"),
        cwd=place.work,
        env=place.environment(),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    proxy = Proxy(process, 0, Path(str(settings.get("data", place.data(0)))), config)
    proxy.token = str((settings.get("server") or {}).get("token") or "")
    listening = asyncio.Event()
    proxy.readers = [
        asyncio.create_task(_drain(stream, proxy, listening)) for stream in (process.stdout, process.stderr)
    ]
    ended = asyncio.create_task(process.wait())
    heard = asyncio.create_task(listening.wait())
    await asyncio.wait({ended, heard}, timeout=START_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    heard.cancel()
    if listening.is_set():
        ended.cancel()
        return proxy
    in_time = ended.done()
    await proxy.kill()
    output = proxy.log.decode("utf-8", "replace")
    said = output if in_time else f"it neither listened nor ended within {START_SECONDS:.0f} s: {output}"
    crashed = "Traceback (most recent call last)" in output  # an accident, not a refusal
    return Start(refused=in_time and process.returncode != 0 and not crashed, output=said)


async def command(place: Place, proxy: Proxy, *words: str) -> tuple[int, str]:
    """Runs one command of the proxy over the same data folder; gives exit code and standard output."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "proxy", "--config", str(proxy.config), "--data", str(proxy.data), *words),
        cwd=place.work,
        env=place.environment(),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        output, errors = await asyncio.wait_for(process.communicate(), START_SECONDS)
    except TimeoutError:
        process.kill()
        await process.wait()
        return 1, "no answer in time"
    code = process.returncode or 0
    return code, (errors if code and not output else output).decode("utf-8", "replace")


async def _drain(stream: asyncio.StreamReader | None, proxy: Proxy, listening: asyncio.Event) -> None:
    while stream is not None and (chunk := await stream.read(1 << 16)):
        proxy.log += chunk
        found = None if listening.is_set() else _LISTENING.search(proxy.log)
        if found is not None and b"\n" in proxy.log[found.end() :]:
            proxy.port = int(found[1])
            listening.set()
