"""Many sessions that talk at once, each like an agent that sends a request again when its proxy dies."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from tests.cases.case import Step, method_and_path
from tests.cases.evidence import Exchange
from tests.cases.plan import Request
from tests.cases.upstream import LABEL

ATTEMPTS = 5
PAUSE_SECONDS = 0.2  # before a request is sent again
Send = Callable[[int, Request], Awaitable[Exchange]]  # session number and request → what came back


@dataclass(slots=True)
class Crowd:
    """The sessions of one `parallel_requests` step."""

    step: Step
    endpoint: str
    send: Send
    problems: list[str] = field(default_factory=list)
    answered: int = 0
    half: asyncio.Event = field(default_factory=asyncio.Event)  # set when half of the requests are answered

    @property
    def total(self) -> int:
        """Requests in all: for each session its goal, then its turns."""
        return int(self.step["sessions"]) * (int(self.step["turns"]) + 1)

    async def talk(self) -> None:
        """Runs all sessions to their end; a request that is never answered with 200 is a problem."""
        await asyncio.gather(*(self._session(number) for number in range(1, self.step["sessions"] + 1)))

    async def _session(self, number: int) -> None:
        messages: list[dict[str, Any]] = [{"role": "user", "content": f"Goal: session {number}."}]
        for turn in range(self.step["turns"] + 1):
            if turn:
                count = (number - 1) * self.step["turns"] + turn
                text = str(self.step["text"]).replace("{n}", str(count))
                messages.append({"role": "user", "content": text})
            body = json.dumps({"model": "demo-1", "messages": messages}, ensure_ascii=False).encode()
            answer = await self._until_answered(number, self._request(number, turn, body))
            if not answer:
                return
            messages.append({"role": "assistant", "content": answer})

    def _request(self, number: int, turn: int, body: bytes) -> Request:
        label = f"session{number}-turn{turn}"
        headers = {"content-type": "application/json", "x-session-id": f"session-{number}", LABEL: label}
        method, path = method_and_path(self.endpoint)
        return Request(label, method, path, headers, body)

    async def _until_answered(self, number: int, request: Request) -> str:
        for _ in range(ATTEMPTS):
            seen = await self.send(number, request)
            if seen.status == 200 and not seen.fault:
                self.answered += 1
                if self.answered * 2 >= self.total:
                    self.half.set()
                return _answer(seen.body)
            if seen.status:
                break
            await asyncio.sleep(PAUSE_SECONDS)
        self.half.set()
        self.problems.append(f"{request.label} was never answered: status {seen.status} {seen.fault}")
        return ""


def _answer(body: bytes) -> str:
    try:
        return str(json.loads(body)["choices"][0]["message"]["content"])
    except (ValueError, LookupError, TypeError):
        return "ok"
