"""`goalkeeper demo`: a long session through several compactions, against a scripted model on this machine."""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from proxy.cli.main import printable
from proxy.cli.output import add_json_flag, line, print_json, print_table
from proxy.demo.child import LOG, Goalkeeper
from proxy.demo.outcome import Outcome, Survival
from proxy.demo.session import play
from proxy.errors import BadRequest, GoalkeeperError

_BUDGET = 12_000
_HEAD, _TAIL = 19, 9  # lines shown of the blocks
_WIDEST = 110


@dataclass(frozen=True, slots=True)
class Run:
    """What a run gave: figures, and what the stored facts and receipts say afterwards."""

    outcome: Outcome
    facts: list[dict[str, Any]]
    verified: dict[str, Any]
    block: str  # id of the newest block in the last request
    seconds: float

    @property
    def well(self) -> bool:
        """Whether all that was promised held."""
        one, verified = self.outcome, self.verified
        on_disk = verified["rebuilt"] >= one.requests and not verified["problems"]
        return one.kept and one.streams == one.streams_in_time and on_disk


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of `demo`."""
    parser.add_argument(
        "--budget", type=int, default=_BUDGET, help=f"most tokens of a forwarded body (default {_BUDGET})"
    )
    add_json_flag(parser)


def run(args: argparse.Namespace) -> int:
    """Plays the session and tells what came out; 1 when a word of the user that binds was missing anywhere."""
    if args.budget < 1_000:
        raise BadRequest("--budget must be 1000 tokens at least: the newest turns alone need so much")
    folder = _folder(args.data)
    if not args.json:
        print(_INTRODUCTION.format(folder=line(str(folder)), budget=args.budget), flush=True)
    started = time.perf_counter()
    try:
        found = asyncio.run(_played(Goalkeeper(folder, args.config or ()), args.budget, started))
    except TimeoutError as error:
        raise GoalkeeperError("the demo took too long and was stopped") from error
    if args.json:
        print_json(_as_fields(found, folder))
    else:
        _tell(found, folder)
    return 0 if found.well else 1


def _folder(chosen: Path | None) -> Path:
    """Gives the data folder: a new temporary one, or the chosen one when nothing is stored there yet."""
    if chosen is None:
        return Path(tempfile.mkdtemp(prefix="goalkeeper-demo-"))
    folder = chosen.expanduser().absolute()
    if (folder / "goalkeeper.db").exists():
        raise BadRequest(f"{folder}: something is stored here already, the demo wants a folder of its own")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


async def _played(goalkeeper: Goalkeeper, budget: int, started: float) -> Run:
    outcome = await play(goalkeeper, budget)
    facts, verified, receipt = await asyncio.gather(
        goalkeeper.told("facts", "list"), goalkeeper.told("verify"), goalkeeper.told("receipts", "show", "last")
    )
    block = (receipt["insertions"] or ["last"])[-1]
    return Run(outcome, facts["facts"], verified, block, time.perf_counter() - started)


def _as_fields(found: Run, folder: Path) -> dict[str, object]:
    fields = asdict(found.outcome) | {"kept": found.outcome.kept, "ok": found.well, "data": str(folder)}
    facts = [{name: fact[name] for name in ("id", "kind", "status", "turn", "text")} for fact in found.facts]
    return fields | {
        "scripted_model": True,
        "facts": facts,
        "verify": found.verified,
        "seconds": round(found.seconds, 2),
    }


_LOOKS = (
    ("facts list", "what the user said that binds"),
    ("receipts list", "what happened to each request"),
    ("archive show {block}", "what the newest block stands for, whole"),
    ("context", "what the context consists of, in tokens"),
    ("verify", "check all of it again"),
)
_INTRODUCTION = """\
The model here is a script: it answers the same whatever it reads. The proxy, the HTTP and the files are real.
A small agent works on a made-up task with a budget of {budget} tokens; halfway it compacts by itself as well.
data: {folder}
"""


def _tell(found: Run, folder: Path) -> None:
    one = found.outcome
    print(
        f"{one.requests} requests, {one.tool_turns} tool turns, {one.streams} answers streamed"
        f" ({one.streams_in_time} arrived while the rest was still unsent), {found.seconds:.1f} s."
    )
    print(
        f"Compactions: {one.compactions} by Goalkeeper, {one.summary_calls} by the agent (its summary left out most);"
        f" words put back: {one.restores} time{'' if one.restores == 1 else 's'}.\n"
    )
    print("In how many requests did the user's sentence stand, word for word, after it was said?\n")
    print_table(("words", "naive cut", "agent alone", "goalkeeper", "sentence"), _rows(one), "nothing was said")
    _tell_lost(one)
    _tell_tokens(one)
    _tell_blocks(one)
    _tell_facts(found, folder)
    print(f"\n{_verdict(found)}")
    if not found.well:
        print(f"What the proxy said: {line(str(folder / LOG))}")


def _verdict(found: Run) -> str:
    if not found.outcome.kept:
        return "FAILED: the goal or a correction was missing in a request."
    if not found.well:
        return "FAILED: the words were kept, but a stream was held back or the store doesn't give back what was sent."
    return "The goal and every correction reached the model in every request."


def _rows(one: Outcome) -> list[dict[str, object]]:
    return [
        {
            "words": words.kind,
            "naive cut": f"{words.naive}/{words.due}",
            "agent alone": f"{words.agent}/{words.due}",
            "goalkeeper": f"{words.here}/{words.due}",
            "sentence": words.text,
        }
        for words in one.words
    ]


def _tell_lost(one: Outcome) -> None:
    lost = [words for words in one.words if words.first_lost]
    print(f"\nnaive cut: only the newest {one.budget} tokens are kept. Lost: {len(lost)} of {len(one.words)}.")
    for words in lost:
        print(f"  from request {words.first_lost} on: {_quoted(words)}")
    print("agent alone: what stood in the requests as the agent sent them; its summary is all that it kept.")


def _quoted(words: Survival) -> str:
    return f'the {words.kind} "{line(words.text)[:60]}…"'


def _tell_tokens(one: Outcome) -> None:
    saved = 1 - one.tokens_here / one.tokens_agent if one.tokens_agent else 0
    again = one.tokens_again / one.tokens_here if one.tokens_here else 0
    print(f"\nTokens the agent sent: {one.tokens_agent} (largest request {one.largest_agent}).")
    print(f"Tokens the model got:  {one.tokens_here} (largest {one.largest_here}), {saved:.0%} less.")
    print(
        f"Of these {again:.0%} repeat the request before byte for byte, which a provider's prefix cache serves;"
        f" the prefix broke {one.prefix_breaks} times in {one.requests} requests."
    )


def _tell_blocks(one: Outcome) -> None:
    if not one.blocks:
        return
    lines = one.blocks.split("\n")
    short = [*lines[:_HEAD], "", f"… {len(lines) - _HEAD - _TAIL} lines more …", "", *lines[-_TAIL:]]
    print("\nIn the last request this stands in place of what left:\n")
    for text in short if len(lines) > _HEAD + _TAIL else lines:
        shown = printable(text)
        print(f"  | {shown if len(shown) <= _WIDEST else shown[: _WIDEST - 1] + '…'}")


def _tell_facts(found: Run, folder: Path) -> None:
    print("\nWhat is on disk now:\n")
    print_table(("kind", "status", "turn", "text"), found.facts, "no facts")
    verified = found.verified
    print(
        f"\n{verified['rebuilt']} of {verified['receipts']} requests could be rebuilt from disk,"
        f" {len(verified['problems'])} problems. Look around:\n"
    )
    where = line(str(folder))
    command = _command()
    looks = [(f"{command} {words.format(block=found.block)} --data {where}", what) for words, what in _LOOKS]
    width = max(len(words) for words, _ in looks)
    for words, what in looks:
        print(f"  {words:{width}}   # {what}")
    print(f"  rm -r {where}")


def _command() -> str:
    """Gives how this command was called, so that the printed lines can be typed as they stand."""
    called = Path(sys.argv[0])
    if called.stem != "goalkeeper":
        return "python -m proxy"
    known = shutil.which("goalkeeper")
    return "goalkeeper" if known and Path(known).resolve() == called.resolve() else line(str(called))
