"""Runs the real command in processes of its own, on the demo's data folder."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from proxy.errors import GoalkeeperError

LOG = "demo-proxy.log"  # in the data folder
_START_SECONDS = 20.0
_STOP_SECONDS = 5.0
_LISTENING = b"listening on "
_ROOT = Path(__file__).parents[2]  # `-m proxy` finds this very package from here


class Goalkeeper(msgspec.Struct, frozen=True):
    """How to call the command: data folder, the user's settings files, and an environment without settings."""

    data: Path
    config: Sequence[Path] = ()

    def command(self, *words: str) -> list[str]:
        """Gives the command line of one command."""
        files = [word for file in self.config for word in ("--config", str(file.absolute()))]
        return [sys.executable, "-m", "proxy", *files, "--data", str(self.data.absolute()), *words]

    @staticmethod
    def environ() -> dict[str, str]:
        """Gives the environment: settings in it would make another demo, and the key file is none of its business."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("GOALKEEPER_")}
        return kept | {"GOALKEEPER_SEAL_KEY": "demo"}

    @contextlib.asynccontextmanager
    async def serving(self, upstream: str) -> AsyncIterator[str]:
        """Runs `goalkeeper serve` on a free port and gives its URL; its log goes to a file in the data folder.

        Raises GoalkeeperError when it doesn't start.
        """
        log = self.data / LOG
        with log.open("wb") as stderr:
            process = await asyncio.create_subprocess_exec(
                *self.command("serve", "--host", "127.0.0.1", "--port", "0", "--upstream", upstream),
                cwd=_ROOT,
                env=self.environ(),
                stdout=asyncio.subprocess.PIPE,
                stderr=stderr,
            )
        try:
            url = await _url(process)
            if not url:
                raise GoalkeeperError(f"the proxy didn't start, see {log}")
            yield url
        finally:
            await _stop(process)

    async def told(self, *words: str) -> dict[str, Any]:
        """Gives the object that a command prints with --json. Raises GoalkeeperError when it prints none."""
        process = await asyncio.create_subprocess_exec(
            *self.command(*words, "--json"), cwd=_ROOT, env=self.environ(), stdout=asyncio.subprocess.PIPE
        )
        out, _ = await process.communicate()
        if not out:
            raise GoalkeeperError(f"goalkeeper {' '.join(words)} told nothing (exit code {process.returncode})")
        told: dict[str, Any] = json.loads(out)
        return told


async def _url(process: asyncio.subprocess.Process) -> str:
    """Gives where the proxy listens, "" when it doesn't say so in time."""
    line = b""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_START_SECONDS):
            line = await process.stdout.readline() if process.stdout else b""
    return line.removeprefix(_LISTENING).strip().decode() if line.startswith(_LISTENING) else ""


async def _stop(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGTERM)
    try:
        async with asyncio.timeout(_STOP_SECONDS):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
