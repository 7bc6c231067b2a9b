"""A small agent: keeps its transcript, runs the tools that the model calls, and compacts by itself once."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import aiohttp
import msgspec

from proxy.demo import script
from proxy.errors import UpstreamBroken

Message = dict[str, Any]


class Exchange(msgspec.Struct, frozen=True):
    """One request of the conversation: what the agent sent, all that was ever said until then, and our headers."""

    sent: bytes
    log: tuple[Message, ...]
    compaction: str  # x-goalkeeper-compaction
    pins: str  # x-goalkeeper-pins


class Agent:
    """Talks to a chat-completions API as agents do."""

    def __init__(
        self, http: aiohttp.ClientSession, base_url: str, budget: int, first_words: Callable[[], None]
    ) -> None:
        self.exchanges: list[Exchange] = []
        self._http = http
        self._url = f"{base_url}/v1/chat/completions"
        self._headers = {"Authorization": "Bearer demo", "x-goalkeeper-budget": str(budget)}
        self._first_words = first_words  # told whenever a stream's first words have arrived
        self._context: list[Message] = [{"role": "system", "content": script.SYSTEM}]
        self._log: list[Message] = list(self._context)

    async def work(self, words: str) -> None:
        """Takes the user's words and works until the model closes without a tool call. Raises UpstreamBroken."""
        self._add({"role": "user", "content": words})
        while calls := (await self._turn()).get("tool_calls"):
            for call in calls:
                function = call["function"]
                (argument,) = json.loads(function["arguments"]).values()
                content = script.result(function["name"], argument)
                self._add({"role": "tool", "tool_call_id": call["id"], "content": content})

    async def compact(self) -> None:
        """Asks the model for a summary, and goes on with nothing but that. Raises UpstreamBroken."""
        asked = [*self._context, {"role": "user", "content": script.ASK_FOR_SUMMARY}]
        reply, _ = await self._post({"model": script.MODEL, "messages": asked})
        summary = {"role": "user", "content": script.SUMMARY_OPENING + reply["content"]}
        self._context = [self._context[0], summary]

    async def _turn(self) -> Message:
        stream = len(self.exchanges) % script.STREAMED_EACH == script.STREAMED_EACH - 1
        body = {"model": script.MODEL, "messages": self._context, "tools": script.TOOLS, "stream": stream}
        sent, log = json.dumps(body).encode(), tuple(self._log)
        reply, headers = await self._post(body)
        told = (headers.get("x-goalkeeper-compaction", ""), headers.get("x-goalkeeper-pins", ""))
        self.exchanges.append(Exchange(sent, log, *told))
        self._add(reply)
        return reply

    async def _post(self, body: dict[str, Any]) -> tuple[Message, dict[str, str]]:
        async with self._http.post(self._url, data=json.dumps(body).encode(), headers=self._headers) as response:
            headers = {name.lower(): value for name, value in response.headers.items()}
            if response.status != 200:
                said = (await response.read())[:400].decode(errors="replace")
                raise UpstreamBroken(f"the demo's request was answered with {response.status}: {said}")
            if not body.get("stream"):
                return json.loads(await response.read())["choices"][0]["message"], headers
            return await self._streamed(response), headers

    async def _streamed(self, response: aiohttp.ClientResponse) -> Message:
        reply: Message = {"role": "assistant", "content": ""}
        async for line in response.content:
            if not line.startswith(b"data: {"):
                continue
            choices = json.loads(line[6:])["choices"]
            delta = choices[0]["delta"] if choices else {}
            if text := delta.get("content"):
                reply["content"] += text
                self._first_words()
            if calls := delta.get("tool_calls"):
                reply["tool_calls"] = [{key: call[key] for key in ("id", "type", "function")} for call in calls]
        return reply

    def _add(self, message: Message) -> None:
        self._context.append(message)
        self._log.append(message)
