"""Starts the programs that are measured, each on a free loopback port, and ends them by their process id."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Coroutine, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
_PATIENCE = 60.0


@dataclass(frozen=True, slots=True)
class Running:
    """A program that listens: where, under which process id, and how many seconds it took to get there."""

    url: str
    pid: int
    seconds: float

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self.url.rpartition(":")[2])

    def rss(self) -> float:
        """Resident memory in MB (Linux)."""
        for line in Path(f"/proc/{self.pid}/status").read_text().split("\n"):
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        raise RuntimeError("no VmRSS in /proc")

    def cpu(self) -> float:
        """CPU seconds spent so far, by all threads (Linux)."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def loop_cpu(self) -> float:
        """CPU seconds spent so far by the first thread, on which the event loop runs (Linux)."""
        return int(Path(f"/proc/{self.pid}/task/{self.pid}/schedstat").read_text().split()[0]) / 1e9


def announce(port: int) -> None:
    """Tells the parent process where we listen."""
    print(f"listening on http://127.0.0.1:{port}", flush=True)


def run_loop(main: Coroutine[Any, Any, None]) -> None:
    """Runs a server on the fastest loop there is until it is ended."""
    try:
        import uvloop  # noqa: PLC0415 (not there on every system)
    except ImportError:
        factory = asyncio.new_event_loop
    else:
        factory = uvloop.new_event_loop
    with contextlib.suppress(KeyboardInterrupt), asyncio.Runner(loop_factory=factory) as runner:
        runner.run(main)


@contextlib.contextmanager
def started(arguments: Sequence[str], **environment: str) -> Iterator[Running]:
    """Runs `python ARGUMENTS` until the block ends; waits for its line "listening on URL"."""
    begun = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield Running(_url(process), process.pid, time.perf_counter() - begun)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _url(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until and (line := process.stdout.readline()):
        if line.startswith("listening on "):
            return line.split()[-1]
    raise RuntimeError(f"{process.args} doesn't listen")


@contextlib.contextmanager
def model(*flags: str) -> Iterator[Running]:
    """Runs the model stand-in."""
    with started(["-m", "benchmarks.upstream", *flags]) as running:
        yield running


@contextlib.contextmanager
def passthrough(upstream: str) -> Iterator[Running]:
    """Runs the plain proxy that ours is compared with."""
    with started(["-m", "benchmarks.passthrough", upstream]) as running:
        yield running


@contextlib.contextmanager
def goalkeeper(upstream: str, *flags: str) -> Iterator[Running]:
    """Runs Goalkeeper with an empty data folder and a seal key of its own."""
    with tempfile.TemporaryDirectory(prefix="goalkeeper-bench-") as folder:
        data = f"{folder}/data"
        command = ["-m", "proxy", "serve", "--port", "0", "--upstream", upstream, "--data", data, *flags]
        with started(command, XDG_CONFIG_HOME=f"{folder}/config") as running:
            yield running
