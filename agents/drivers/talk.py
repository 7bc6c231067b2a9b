"""What the drivers share: they read the user's words from stdin, one JSON line each, and say when a turn has ended."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable


def shell(command: str) -> str:
    """Runs a command and gives what it printed."""
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout + done.stderr


def converse(turn: Callable[[str], Awaitable[str]]) -> None:
    """Answers each line of stdin by one turn of the agent."""

    async def main() -> None:
        while line := await asyncio.to_thread(sys.stdin.readline):
            print(await turn(json.loads(line)["say"]), flush=True)
            print(json.dumps({"type": "turn_end"}), flush=True)

    asyncio.run(main())
