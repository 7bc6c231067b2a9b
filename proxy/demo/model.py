"""The model stand-in: an HTTP server on loopback that answers from the script and keeps every body that reaches it."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterable, Iterator
from hashlib import blake2b
from typing import Any

from aiohttp import web

from proxy.demo import script
from proxy.dialects.chat import Chat
from proxy.tokens import Counter
from proxy.transcript import Transcript

_READER_SECONDS = 10.0


class StandIn:
    """Answers the conversation in the order of the script, and a request without tools with the lossy summary.

    Like a real API it refuses a body whose tool calls aren't paired with their results, and counts the tokens it reads.
    """

    def __init__(self, replies: Iterable[script.Reply], counter: Counter) -> None:
        self.bodies: list[bytes] = []  # of the conversation, in order
        self.summary_calls: list[bytes] = []
        self.streams = 0
        self.streams_in_time = 0  # first words were read by the agent while the rest was still unsent
        self.reader_saw = asyncio.Event()
        self._replies: Iterator[script.Reply] = iter(replies)
        self._counter = counter

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answers one HTTP request."""
        body = b"".join([chunk async for chunk in request.content.iter_any()])
        transcript = Chat().parse(body)
        if not paired(json.loads(body)["messages"]):
            return _json(400, {"error": {"message": "tool calls and results are not paired"}})
        if not transcript.tools:
            self.summary_calls.append(body)
            return _json(200, self._completion(transcript, script.Reply(script.LOSSY_SUMMARY)))
        self.bodies.append(body)
        reply = next(self._replies)
        if transcript.stream:
            return await self._stream(request, transcript, reply)
        return _json(200, self._completion(transcript, reply))

    def _completion(self, transcript: Transcript, reply: script.Reply) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": reply.text}
        if reply.tool:
            message["tool_calls"] = [self._call(reply)]
        choice = {"index": 0, "message": message, "finish_reason": _finish(reply)}
        return {**self._frame("chat.completion"), "choices": [choice], "usage": self._usage(transcript, reply)}

    async def _stream(
        self, request: web.BaseRequest, transcript: Transcript, reply: script.Reply
    ) -> web.StreamResponse:
        """Sends the first words, waits until the agent has them, and only then sends the rest."""
        self.streams += 1
        self.reader_saw.clear()
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(self._event({"role": "assistant", "content": reply.text}))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_READER_SECONDS):
                await self.reader_saw.wait()
        self.streams_in_time += self.reader_saw.is_set()
        if reply.tool:
            await response.write(self._event({"tool_calls": [{"index": 0, **self._call(reply)}]}))
        await response.write(self._event({}, _finish(reply)))
        usage = {**self._frame("chat.completion.chunk"), "choices": [], "usage": self._usage(transcript, reply)}
        await response.write(_sse(usage) + b"data: [DONE]\n\n")
        return response

    def _event(self, delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return _sse({**self._frame("chat.completion.chunk"), "choices": [choice]})

    def _frame(self, kind: str) -> dict[str, Any]:
        return {"id": f"chatcmpl-{len(self.bodies)}", "object": kind, "model": script.MODEL}

    @staticmethod
    def _call(reply: script.Reply) -> dict[str, Any]:
        name = "command" if reply.tool == "run" else "path"
        arguments = json.dumps({name: reply.argument})
        identity = blake2b(f"{reply.tool} {reply.argument}".encode(), digest_size=12).hexdigest()
        function = {"name": reply.tool, "arguments": arguments}
        return {"id": f"call_{identity}", "type": "function", "function": function}

    def _usage(self, transcript: Transcript, reply: script.Reply) -> dict[str, int]:
        prompt, completion = body_tokens(transcript, self._counter), self._counter.text(reply.text)
        return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def body_tokens(transcript: Transcript, counter: Counter) -> int:
    """Counts the tokens of a body, tools included."""
    tools = counter.once(transcript.tools_raw.decode()) if transcript.tools_raw else 0
    return tools + sum(counter.message(message) for message in transcript.messages)


def paired(messages: list[dict[str, Any]]) -> bool:
    """Tells whether each tool call is answered directly behind its message, and no result stands alone."""
    waiting: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                return False
            waiting.discard(message["tool_call_id"])
        elif waiting:
            return False
        else:
            waiting = {call["id"] for call in message.get("tool_calls") or ()}
    return not waiting


@contextlib.asynccontextmanager
async def listening(stand_in: StandIn) -> AsyncIterator[str]:
    """Serves on a free loopback port and gives the URL."""
    runner = web.ServerRunner(web.Server(stand_in.answer, access_log=None), shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def _finish(reply: script.Reply) -> str:
    return "tool_calls" if reply.tool else "stop"


def _json(status: int, value: object) -> web.Response:
    return web.Response(status=status, body=json.dumps(value).encode(), headers={"Content-Type": "application/json"})


def _sse(value: object) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"
