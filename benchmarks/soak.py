"""Soak: many sessions at once with one key, one system prompt and the same opening words, and never a word of another.

Each session works through tool turns with corrections of its own, cuts of Goalkeeper and two compactions of the agent,
without any session id; call ids are weak, so that content alone has to tell the sessions apart.

Run: python -m benchmarks.soak [--sessions 50] [--turns 24]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import random
import sys
import time
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from benchmarks.gen import output
from benchmarks.processes import goalkeeper
from tests.fake_model import FakeModel, Reply, Seen, chat_reply

SYSTEM = {"role": "system", "content": "You are a coding agent working in a repository. Use the tools."}
OPENING = "Goal: go through the modules one after the other and fix what is broken."
ORDER = "Your task is to create a detailed summary of the conversation so far."
TOOLS = [{"type": "function", "function": {"name": "read_file", "parameters": {"type": "object", "properties": {}}}}]
BUDGET = 9_000  # tokens: small, so that each session is cut several times
_numbers = itertools.count()


@dataclass(slots=True)
class Session:
    """One agent: what it sends, and what of its user's words must stand in each body from now on."""

    number: int
    messages: list[dict[str, Any]]
    binding: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    failed: list[int] = field(default_factory=list)


def answer(seen: Seen) -> Reply:
    """A tool call where tools are offered; else a summary that keeps nothing of what the user said."""
    body = seen.json()
    number = next(_numbers)
    if not body.get("tools"):
        return chat_reply(
            f"Several modules were read, the newest one in step {number}. The work on them goes on as planned."
        )
    call = {"name": "read_file", "arguments": json.dumps({"path": f"src/mod_{len(body['messages']):03}.py"})}
    message = {
        "role": "assistant",
        "content": f"I read the next module of the service now, step {len(body['messages'])}.",
        "tool_calls": [{"id": "call_0", "type": "function", "function": call}],
    }
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    return Reply(body=json.dumps({"id": "x", "object": "chat.completion", "choices": [choice]}).encode())


class Soak:
    """All sessions against one Goalkeeper."""

    def __init__(self, client: aiohttp.ClientSession, url: str, model: FakeModel) -> None:
        self._client = client
        self._url = f"{url}/v1/chat/completions"
        self._model = model

    async def play(self, number: int, turns: int) -> Session:
        """Plays one session from its opening to its end."""
        rng = random.Random(number)
        session = Session(number, [SYSTEM, {"role": "user", "content": OPENING}], [OPENING])
        for turn in range(turns):
            if turn in (turns // 3, 2 * turns // 3):
                await self._compact(session)
            if turn % 5 == 3:
                words = f"No, module {turn} must keep the port {7000 + number * 100 + turn}, nothing else."
                session.messages.append({"role": "user", "content": words})
                session.binding.append(words)
            reply = await self._ask(session, session.messages, tools=True)
            session.messages += [reply, {"role": "tool", "tool_call_id": "call_0", "content": output(rng, 1_500)}]
        return session

    async def _compact(self, session: Session) -> None:
        order = {"role": "user", "content": ORDER}
        summary = await self._ask(session, [*session.messages, order], tools=False)
        session.messages = [SYSTEM, {"role": "user", "content": f"Summary of the work so far:\n{summary['content']}"}]

    async def _ask(self, session: Session, messages: list[dict[str, Any]], *, tools: bool) -> dict[str, Any]:
        mark = f"{session.number}-{len(self._model.seen)}-{next(_numbers)}"
        headers = {"Authorization": "Bearer sk-one-for-all", "x-soak": mark, "x-goalkeeper-budget": str(BUDGET)}
        body = {"model": "m", "messages": messages, **({"tools": TOOLS} if tools else {})}
        async with self._client.post(self._url, json=body, headers=headers) as response:
            if response.status != 200:
                session.failed.append(response.status)
            said = (await response.json())["choices"][0]["message"]
        if tools:
            self._check(session, next(one for one in reversed(self._model.seen) if one.header("x-soak") == mark))
        return {key: said[key] for key in ("role", "content", "tool_calls") if said.get(key)}

    @staticmethod
    def _check(session: Session, seen: Seen) -> None:
        text = "\n".join(str(message.get("content")) for message in seen.json()["messages"])
        session.lost += [words for words in session.binding if words not in text]
        session.foreign += [
            line for line in text.split("\n") if "must keep the port" in line and not _belongs(line, session.number)
        ]


def _belongs(line: str, number: int) -> bool:
    port = int(line.partition("the port ")[2].partition(",")[0])
    return (port - 7000) // 100 == number


async def _played(url: str, model: FakeModel, sessions: int, turns: int) -> list[Session]:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as client:
        soak = Soak(client, url, model)
        return list(await asyncio.gather(*(soak.play(number, turns) for number in range(sessions))))


async def soak(sessions: int, turns: int) -> dict[str, Any]:
    """Plays all sessions at once and counts what was lost, and what came from another session."""
    async with FakeModel(answer) as model:
        with contextlib.ExitStack() as stack:
            running = await asyncio.to_thread(stack.enter_context, goalkeeper(model.url))
            begun = time.perf_counter()
            played = await _played(running.url, model, sessions, turns)
            seconds = time.perf_counter() - begun
    return {
        "sessions": sessions,
        "requests": len(model.seen),
        "seconds": round(seconds, 1),
        "words_lost": sum(len(one.lost) for one in played),
        "words_of_others": sum(len(one.foreign) for one in played),
        "failed_requests": sum(len(one.failed) for one in played),
    }


def main() -> int:
    """Prints the figures as JSON; exit code 1 when a word was lost, came from elsewhere, or a request failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=50)
    parser.add_argument("--turns", type=int, default=24)
    args = parser.parse_args()
    found = asyncio.run(soak(args.sessions, args.turns))
    print(json.dumps(found, indent=1))
    return int(bool(found["words_lost"] or found["words_of_others"] or found["failed_requests"]))


if __name__ == "__main__":
    sys.exit(main())
