"""Runs a case: every run of it in fresh folders, with a fresh proxy and a fresh fake model."""

from __future__ import annotations

import asyncio
import re
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.cases.case import Case, Run, read_case, runs_of
from tests.cases.driver import Driver
from tests.cases.evidence import Evidence
from tests.cases.expect import failures
from tests.cases.faults import Malformed, Unmet, clip
from tests.cases.process import Place

RUN_SECONDS = 180.0


@dataclass(frozen=True, slots=True)
class Result:
    """What came out of one case."""

    id: str
    reasons: tuple[str, ...]  # empty: passed
    seconds: float = 0.0
    folders: tuple[str, ...] = ()  # kept on request

    @property
    def passed(self) -> bool:
        """Whether every expectation of every run held."""
        return not self.reasons

    @property
    def line(self) -> str:
        """What is printed for the case."""
        if self.passed:
            return f"pass {clip(self.id)}"
        return f"FAIL {clip(self.id)}: " + "; ".join(clip(reason, 500) for reason in self.reasons)


def run_case(case: Case, *, keep: bool = False) -> Result:
    """Runs a case to its end and gives the result; for callers without an event loop."""
    return asyncio.run(play_case(case, keep=keep))


async def play_case(case: Case, *, keep: bool = False) -> Result:
    """Runs a case to its end and gives the result; nothing that a case does stops the runner."""
    started = time.monotonic()
    reasons: list[str] = []
    folders: list[str] = []
    try:
        for run in runs_of(case):
            folder = tempfile.mkdtemp(prefix="goalkeeper-case-")
            folders.append(folder)
            found = await _play_run(run, Place(Path(folder)), keep=keep)
            reasons.extend(f"[{run.name}] {reason}" if run.name else reason for reason in found)
    except Malformed as fault:
        reasons.append(f"malformed: {fault}")
    except Exception as error:  # noqa: BLE001 (one broken case must not stop the others)
        reasons.append(f"the runner failed: {type(error).__name__}: {error}")
    finally:
        for one in folders if not keep else ():
            shutil.rmtree(one, ignore_errors=True)
    return Result(case.id, tuple(reasons), time.monotonic() - started, tuple(folders) if keep else ())


async def play_file(path: Path, *, keep: bool = False) -> Result:
    """Reads and runs one case file."""
    try:
        case = read_case(path)
    except Malformed as fault:
        return Result(path.stem, (f"malformed: {fault}",))
    return await play_case(case, keep=keep)


def files_in(places: Sequence[Path]) -> list[Path]:
    """Gives the case files of folders and files, in order of name. Raises Malformed for a place that isn't there."""
    found: list[Path] = []
    for place in places:
        if place.is_dir():
            found.extend(sorted(place.glob("*.json")))
        elif place.is_file():
            found.append(place)
        else:
            raise Malformed(f"{place} is neither a folder nor a file")
    return found


async def _play_run(run: Run, place: Place, *, keep: bool) -> list[str]:
    try:
        async with asyncio.timeout(RUN_SECONDS):
            evidence = await Driver(run, place).play()
    except Unmet as fault:
        return [str(fault)]
    except TimeoutError:
        return [f"the run took longer than {RUN_SECONDS:.0f} s, or something in it never came"]
    if keep:
        _write_bodies(evidence, place.root / "forwarded")
    return failures(run, evidence)


def _write_bodies(evidence: Evidence, folder: Path) -> None:
    """Leaves what was forwarded beside the proxy's own files, for people who look into a failed case."""
    folder.mkdir()
    for number, forward in enumerate(one for many in evidence.forwards.values() for one in many):
        name = re.sub(r"[^\w#-]", "_", forward.label)[:80]
        (folder / f"{number:02}-{name}.json").write_bytes(forward.body)
