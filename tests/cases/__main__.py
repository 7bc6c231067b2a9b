"""`python -m tests.cases FOLDER_OR_FILE…`: runs case files, prints pass or FAIL for each, exits 1 when one fails."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.cases.faults import Malformed, clip
from tests.cases.runner import Result, files_in, play_file


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the named case files; gives the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.cases", description=__doc__)
    parser.add_argument("places", nargs="+", type=Path, metavar="FOLDER_OR_FILE")
    parser.add_argument("--jobs", type=int, default=2, help="cases at a time (default 2)")
    parser.add_argument("--filter", default="", metavar="TEXT", help="only files whose name contains this")
    parser.add_argument("--priority", default="", metavar="P0", help="only cases of this priority")
    parser.add_argument("--keep", action="store_true", help="keep the folders of each run and say where they are")
    parser.add_argument("-v", "--verbose", action="store_true", help="print the seconds of each case")
    options = parser.parse_args(arguments)
    try:
        paths = [path for path in files_in(options.places) if options.filter in path.name]
    except Malformed as fault:
        parser.error(str(fault))
    chosen = [path for path in paths if not options.priority or _priority(path) in (options.priority, None)]
    if not chosen:
        parser.error("no case file matches")
    results = asyncio.run(_all(chosen, options))
    failed = sum(not result.passed for result in results)
    sys.stdout.write(f"{len(results)} cases: {len(results) - failed} passed, {failed} failed\n")
    return 1 if failed else 0


async def _all(paths: Sequence[Path], options: argparse.Namespace) -> list[Result]:
    places = asyncio.Semaphore(max(options.jobs, 1))

    async def one(path: Path) -> Result:
        async with places:
            result = await play_file(path, keep=options.keep)
        sys.stdout.write(result.line + (f" ({result.seconds:.1f} s)" if options.verbose else "") + "\n")
        for folder in result.folders:
            sys.stdout.write(f"  kept: {clip(folder)}\n")
        sys.stdout.flush()
        return result

    return await asyncio.gather(*(one(path) for path in paths))


def _priority(path: Path) -> str | None:
    """Gives a file's priority; None when it can't be read, so that the file still runs and fails with its reason."""
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return str(value.get("priority", "")) if isinstance(value, dict) else None


if __name__ == "__main__":
    raise SystemExit(main())
