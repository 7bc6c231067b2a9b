"""Runs real agents through Goalkeeper against a scripted model, and says whether the user's words got through.

Run: python -m agents [--only NAME,…] [--scenario NAME,…] [--json] [--keep FOLDER]
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import subprocess
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from agents import report
from agents.checks import Result, judge
from agents.install import cache_folder, install
from agents.run import Run, run
from agents.runners import claude, cline, cn, codex, opencode, pi, python, qwen
from agents.runners.base import Agent
from agents.script import SCENARIOS

MODULES = (opencode, pi, qwen, cline, cn, codex, claude, python)
AGENTS: dict[str, Agent] = {agent.name: agent for module in MODULES for agent in module.AGENTS}


def main() -> int:
    """Runs what is named, everything by default; gives 1 when something isn't as it must be."""
    parser = argparse.ArgumentParser(prog="python -m agents", description=__doc__)
    parser.add_argument("--only", default="", help=f"some of: {', '.join(AGENTS)}")
    parser.add_argument("--scenario", default="", help=f"some of: {', '.join(SCENARIOS)}")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--keep", type=Path, help="keep bodies and logs of each run in this folder")
    args = parser.parse_args()
    names = [name for name in args.only.split(",") if name] or list(AGENTS)
    unknown = sorted(set(names) - set(AGENTS))
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; there are: {', '.join(AGENTS)}")
    wanted = [name for name in args.scenario.split(",") if name] or list(SCENARIOS)
    results = [
        _one(AGENTS[name], each, args.keep) for name in names for each in AGENTS[name].scenarios if each in wanted
    ]
    print(report.as_json(results) if args.json else report.table(results))
    return 1 if not results or any(result.wrong for result in results) else 0


def _one(agent: Agent, name: str, keep: Path | None) -> Result:
    """Runs one scenario; what keeps it from running is a result too."""
    cache = cache_folder()
    scenario = SCENARIOS[name]
    try:
        version = [install(package, cache) for package in agent.packages][-1]
        seen = asyncio.run(_until_told(run(agent, scenario, cache, keep and keep / f"{agent.name}-{name}")))
    except (RuntimeError, OSError, TimeoutError, subprocess.SubprocessError) as error:
        result = Result(agent.name, name, wrong=[f"it couldn't be run: {error or type(error).__name__}"])
    else:
        result = judge(agent, scenario, seen)
        result.version = version
    print(" ".join(report.row(result)), file=sys.stderr, flush=True)
    return result


async def _until_told(running: Coroutine[Any, Any, Run]) -> Run:
    """Ends in order when this process is told to end, so that nothing which it started stays behind."""
    task = asyncio.ensure_future(running)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await task


if __name__ == "__main__":
    sys.exit(main())
