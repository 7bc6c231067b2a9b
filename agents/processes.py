"""Starts programs in groups of their own and ends each of them by its process id, daemons that they left included."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_LISTENING = re.compile(r"listening on (http://\S+)")
_START_SECONDS = 60
_GRACE_SECONDS = 5


async def start(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], log: Path
) -> asyncio.subprocess.Process:
    """Starts a program with nothing to read; what it says goes to the end of the log."""
    with log.open("ab") as output:
        return await asyncio.create_subprocess_exec(
            *command,
            cwd=folder,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )


async def end(process: asyncio.subprocess.Process) -> int:
    """Ends a program with its group, and gives its exit code."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    try:
        await asyncio.wait_for(process.wait(), _GRACE_SECONDS)
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
    return process.returncode or 0


def end_strays(home: Path) -> int:
    """Ends what still runs with this home folder, and gives how many that were (only where /proc tells)."""
    mark, ended = f"HOME={home}".encode(), 0
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark in (entry / "environ").read_bytes().split(b"\0"):
                os.kill(int(entry.name), signal.SIGKILL)
                ended += 1
    return ended


def settings_free(root: Path) -> dict[str, str]:
    """Gives an environment in which no settings of ours reach Goalkeeper."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GOALKEEPER_")}
    return kept | {"XDG_CONFIG_HOME": str(root / "config"), "PYTHONPATH": str(ROOT)}


@contextlib.asynccontextmanager
async def goalkeeper(upstream: str, root: Path, settings: Mapping[str, str]) -> AsyncIterator[str]:
    """Runs Goalkeeper with an empty data folder and these settings (in the environment's form), and gives its URL."""
    command = [
        sys.executable,
        "-m",
        "proxy",
        "serve",
        "--port",
        "0",
        "--upstream",
        upstream,
        "--data",
        str(root / "data"),
    ]
    log = root / "goalkeeper.log"
    process = await start(command, ROOT, settings_free(root) | settings, log)
    try:
        yield await _url(process, log)
    finally:
        await end(process)


async def _url(process: asyncio.subprocess.Process, log: Path) -> str:
    said = ""
    for _ in range(_START_SECONDS * 10):
        said = await asyncio.to_thread(log.read_text, "utf-8", "replace")
        if (found := _LISTENING.search(said)) is not None:
            return found[1]
        if process.returncode is not None:
            break
        await asyncio.sleep(0.1)
    raise RuntimeError(f"Goalkeeper doesn't listen: {said[-500:]}")
