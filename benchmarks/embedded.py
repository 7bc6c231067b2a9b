"""Buries labelled sessions in tool output and drives them through Goalkeeper, to see whether each human word stays.

Each session becomes a chat of which human words are at most 5 %, sent turn by turn, whole each time, at a budget of
30 % of its whole body, until it was compacted five times. Each forwarded body is searched for every human turn said so
far, in the role `user`. With --tight pins get less room than the binding words need: then the order of giving way is
checked.

Run: python -m benchmarks.embedded SESSIONS.jsonl [--tight TOKENS] [--sessions N]   (format: docs/pins.md)
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from benchmarks.gen import TOOLS, output
from benchmarks.processes import goalkeeper
from proxy.cli.labelled import Session, Turn, read_sessions
from proxy.pins.lifecycle import add
from proxy.pins.model import Ledger, Pin
from proxy.pins.rules import RuleSet, load_rules
from proxy.settings.loading import packaged_folder
from proxy.tokens import Counter as Tokens
from proxy.transcript import HumanTurn
from tests.fake_model import FakeModel, Reply, Seen

SHARE = 0.05  # most that human words may be of all characters
LEAST = 60_000  # characters of a session at least, so that five compactions have something to do
STEP = 1_800  # characters of one tool result
BUDGET = 0.3  # of the tokens of the whole body
COMPACTIONS = 5
EXTRA = 400  # most steps behind the end, for sessions that were not compacted five times until then
LINE = 60  # characters of a binding turn's beginning that stay whatever happens
# How each agent is known, so that its own profile reads its messages.
AGENTS = {"claude-code": "claude-cli/2.1", "codex": "codex_cli_rs/0.90"}
SYSTEMS = {"cline": "You are Cline, a coding agent.", "aider": "Act as an expert software developer."}
_CORE = ("goal", "correction", "constraint")


@dataclass(slots=True)
class Run:
    """One session on its way: what was said, and what the forwarded bodies showed."""

    session: Session
    budget: int = 0
    messages: list[dict[str, Any]] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    asked: str = ""
    ledger: Ledger = field(default_factory=Ledger)
    share: float = 0.0
    requests: int = 0
    searched: int = 0  # human turns looked for in bodies
    compactions: int = 0
    length: int = 0  # messages of the newest forwarded body
    lost: list[str] = field(default_factory=list)
    order: list[str] = field(default_factory=list)  # words that stayed although dearer ones gave way
    gave_way: int = 0  # bodies in which binding words aren't verbatim
    unflagged: int = 0  # such bodies whose header or receipt didn't say so
    receipts: list[str] = field(default_factory=list)
    failed: list[int] = field(default_factory=list)


def human(turn: Turn) -> str:
    """Gives what a person said in a turn, "" for machine text and for mixed turns whose human part isn't labelled."""
    if "injected" not in turn.labels:
        return turn.content.strip()
    return turn.span if turn.labels - {"injected"} else ""


def script(session: Session) -> Iterator[list[dict[str, Any]]]:
    """Yields what the agent adds before each of its requests: the turns, with tool calls after each."""
    rng = random.Random(session.id)
    spoken = sum(len(human(turn)) for turn in session.turns)
    room = max(LEAST, int(spoken / SHARE) + STEP)
    users = sum(turn.role == "user" for turn in session.turns)
    steps = room // STEP // max(users, 1) + 1
    number = 0
    for turn in session.turns:
        if turn.role == "user":
            yield [{"role": "user", "content": turn.content}]
            for _ in range(steps):
                number += 1
                yield call(rng, number)
        elif turn.role == "assistant":
            yield [{"role": "assistant", "content": turn.content or "Done."}]
    for extra in range(EXTRA):
        yield call(rng, number + extra + 1)


def call(rng: random.Random, number: int) -> list[dict[str, Any]]:
    """Gives one tool call and its result."""
    asked = {"name": "read_file", "arguments": json.dumps({"path": f"src/{rng.randrange(10**6)}_{number}.py"})}
    return [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": f"c{number}", "type": "function", "function": asked}],
        },
        {"role": "tool", "tool_call_id": f"c{number}", "content": output(rng, STEP)},
    ]


def whole(session: Session) -> list[dict[str, Any]]:
    """Gives all messages of a session without the steps behind its end."""
    pieces = list(script(session))[:-EXTRA]
    return [system(session), *(message for piece in pieces for message in piece)]


def system(session: Session) -> dict[str, Any]:
    """Gives the system message."""
    return {"role": "system", "content": SYSTEMS.get(session.client, "You are a coding agent. Use the tools.")}


class Player:
    """Plays sessions against one Goalkeeper; the model answers what the session goes on with."""

    def __init__(
        self, client: aiohttp.ClientSession, url: str, model: FakeModel, rules: RuleSet, *, tight: bool
    ) -> None:
        self._client = client
        self._url = url
        self._model = model
        self._rules = rules
        self._tight = tight
        self._tokens = Tokens()

    async def play(self, session: Session) -> Run:
        """Plays one session until it was compacted five times and came to its end."""
        messages = whole(session)
        size = sum(self._tokens.text(json.dumps(message, ensure_ascii=False)) for message in messages)
        run = Run(session, int(BUDGET * size), [system(session)])
        characters = sum(len(message["content"] or "") for message in messages)
        run.share = sum(len(human(turn)) for turn in session.turns) / characters
        ended = len(list(script(session))) - EXTRA
        for number, piece in enumerate(script(session)):
            if number >= ended and run.compactions >= COMPACTIONS:
                break
            self._hear(run, piece, number)
            run.messages += piece
            if piece[-1]["role"] != "assistant":
                await self._ask(run)
        return run

    def _hear(self, run: Run, piece: list[dict[str, Any]], number: int) -> None:
        for message in piece:
            if message["role"] == "assistant" and message["content"]:
                run.asked = message["content"][-400:]
            if message["role"] == "user":
                turn = next(one for one in run.session.turns if one.content == message["content"])
                words = human(turn)
                if words:
                    run.said.append(words)
                    key = f"{number}".encode()
                    run.ledger = add(run.ledger, HumanTurn(key, words, number, "", asked=run.asked), self._rules)

    async def _ask(self, run: Run) -> None:
        mark = f"{run.session.id}-{run.requests}"
        headers = {"authorization": "Bearer k", "x-goalkeeper-budget": str(run.budget), "x-mark": mark}
        headers["user-agent"] = AGENTS.get(run.session.client, "")
        body = {"model": "m", "messages": run.messages, "tools": TOOLS}
        async with self._client.post(f"{self._url}/v1/chat/completions", json=body, headers=headers) as response:
            await response.read()
            if response.status != 200:
                run.failed.append(response.status)
                return
            run.receipts.append(response.headers["x-goalkeeper-receipt"])
            shown, _, active = response.headers.get("x-goalkeeper-pins", "0/0").partition("/")
        run.requests += 1
        seen = next(one for one in reversed(self._model.seen) if one.header("x-mark") == mark)
        self._model.seen.remove(seen)
        self._search(run, seen, complete=shown == active)

    def _search(self, run: Run, seen: Seen, *, complete: bool) -> None:
        messages = seen.json()["messages"]
        run.compactions += len(messages) < run.length  # between two compactions a body only grows
        run.length = len(messages)
        texts = [_text(message) for message in messages if message["role"] == "user"]
        all_of_it = "\n".join(texts)
        missing = [words for words in run.said if words not in all_of_it]
        run.searched += len(run.said)
        if not self._tight:
            run.lost += missing
            return
        active = [pin for pin in run.ledger.pins if pin.active]
        short = [pin for pin in active if pin.text in missing]
        run.lost += [pin.text for pin in short if pin.kind in _CORE and pin.text[:LINE].split("\n")[0] not in all_of_it]
        if short:
            run.gave_way += 1
            run.unflagged += complete
        if any(pin.kind in _CORE for pin in short):
            run.order += _kept_too_long(active, texts, run)

    async def flags(self, run: Run) -> Counter[str]:
        """Gives the flags on the session's receipts, `over budget` among them."""
        found: Counter[str] = Counter()
        for name in run.receipts:
            async with self._client.get(f"{self._url}/admin/receipts/{name}") as response:
                receipt = await response.json()
            found.update(receipt.get("flags", ["no receipt"]))
            found["over budget"] += receipt.get("tokens_out", 0) > receipt.get("budget", 0)
        return found


def _kept_too_long(active: list[Pin], texts: list[str], run: Run) -> list[str]:
    """The words in our blocks that should have left before any core pin was cut."""
    own = set(run.said)
    blocks = "\n".join(text for text in texts if text not in own)
    return [pin.text for pin in active if pin.kind not in _CORE and len(pin.text) > LINE and pin.text in blocks]


def _text(message: dict[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


def answer(_: Seen) -> Reply:
    """The model's answer; the agent goes on with words of its own."""
    choice = {"index": 0, "message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}
    return Reply(body=json.dumps({"id": "x", "object": "chat.completion", "choices": [choice]}).encode())


async def _played(url: str, model: FakeModel, sessions: list[Session], *, tight: bool) -> dict[str, Any]:
    rules = load_rules([packaged_folder() / "pins.yaml"])
    gate = asyncio.Semaphore(4)
    async with aiohttp.ClientSession() as client:
        player = Player(client, url, model, rules, tight=tight)

        async def one(session: Session) -> Run:
            async with gate:
                return await player.play(session)

        runs = await asyncio.gather(*(one(session) for session in sessions))
        flags: Counter[str] = Counter()
        for run in runs:
            flags += await player.flags(run)
    return _told(runs, flags)


def _told(runs: list[Run], flags: Counter[str]) -> dict[str, Any]:
    return {
        "sessions": len(runs),
        "requests": sum(run.requests for run in runs),
        "human_share_max": round(max(run.share for run in runs), 4),
        "compactions_min": min(run.compactions for run in runs),
        "human_turns_searched": sum(run.searched for run in runs),
        "lost": sum(len(run.lost) for run in runs),
        "gave_way_bodies": sum(run.gave_way for run in runs),
        "gave_way_unflagged": sum(run.unflagged for run in runs),
        "order_broken": sum(len(run.order) for run in runs),
        "failed_requests": sum(len(run.failed) for run in runs),
        "flags": dict(flags),
        "examples": [f"{run.session.id}: {words[:80]}" for run in runs for words in (*run.lost, *run.order)][:10],
    }


async def embedded(sessions: list[Session], tight: int) -> dict[str, Any]:
    """Plays all sessions and counts."""
    async with FakeModel(answer) as model:
        with contextlib.ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="goalkeeper-bench-")))
            settings = folder / "tight.yaml"
            settings.write_text(f"pins:\n  max_tokens: {tight}\n" if tight else "{}\n", encoding="utf-8")
            running = await asyncio.to_thread(stack.enter_context, goalkeeper(model.url, "--config", str(settings)))
            begun = time.perf_counter()
            found = await _played(running.url, model, sessions, tight=bool(tight))
    return found | {"seconds": round(time.perf_counter() - begun, 1)}


def main() -> int:
    """Prints the figures as JSON; exit code 1 when words were lost, gave way in a wrong order, or went unflagged."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, metavar="SESSIONS.jsonl")
    parser.add_argument(
        "--tight", type=int, default=0, metavar="TOKENS", help="room for pins and history (pins.max_tokens)"
    )
    parser.add_argument("--sessions", type=int, default=0, help="play the first N only")
    args = parser.parse_args()
    sessions = read_sessions(args.file, labelled=True)
    found = asyncio.run(embedded(list(sessions[: args.sessions or None]), args.tight))
    print(json.dumps(found, indent=1, ensure_ascii=True))
    bad = ("lost", "gave_way_unflagged", "order_broken", "failed_requests")
    return int(any(found[name] for name in bad) or found["compactions_min"] < COMPACTIONS)


if __name__ == "__main__":
    sys.exit(main())
