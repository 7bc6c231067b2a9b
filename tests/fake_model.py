"""A model API on loopback that answers as it is told: a real HTTP server with faults on demand.

async with FakeModel() as model:
    model.say(Reply(status=429, body=b"slow down"))
    ...
    assert model.seen[0].json()["model"] == "demo"
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from aiohttp import web
from multidict import CIMultiDict

SSE = (("Content-Type", "text/event-stream"),)
JSON = (("Content-Type", "application/json"),)


@dataclass(slots=True)
class Seen:
    """A request as it arrived; `closed` is set when its connection was closed before the answer was complete."""

    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    closed: asyncio.Event = field(default_factory=asyncio.Event)

    def header(self, name: str) -> str | None:
        """Gives the first value of a header."""
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)

    def json(self) -> Any:
        """Gives the body as JSON."""
        return json.loads(self.body)


@dataclass(frozen=True, slots=True)
class Reply:
    """What to answer. `chunks` are sent one by one; `before` and `after` hold the answer back until they are set."""

    status: int = 200
    headers: Sequence[tuple[str, str]] = JSON
    body: bytes = b""
    chunks: Sequence[bytes] | None = None
    raw: bytes | None = None  # sent in place of an HTTP answer
    before: asyncio.Event | None = None  # waited for before the status line
    between: asyncio.Event | None = None  # waited for after the first chunk
    then: Literal["close", "abort", "hang"] = "close"


def chat_reply(text: str = "ok", usage: dict[str, int] | None = None) -> Reply:
    """A chat completion that isn't streamed."""
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    body: dict[str, Any] = {"id": "chatcmpl-1", "object": "chat.completion", "choices": [choice]}
    if usage:
        body["usage"] = usage
    return Reply(body=json.dumps(body).encode())


def event(data: object) -> bytes:
    """One server-sent event with JSON in it."""
    return b"data: " + json.dumps(data, ensure_ascii=False).encode() + b"\n\n"


def chat_stream(*texts: str, usage: dict[str, int] | None = None) -> Reply:
    """A streamed chat completion, one event for each text, closed with [DONE]."""
    base: dict[str, Any] = {"id": "chatcmpl-1", "object": "chat.completion.chunk"}
    events = [event({**base, "choices": [{"index": 0, "delta": {"content": text}}]}) for text in texts]
    events.append(event({**base, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}))
    if usage:
        events.append(event({**base, "choices": [], "usage": usage}))
    return Reply(headers=SSE, chunks=(*events, b"data: [DONE]\n\n"))


def default_reply(seen: Seen) -> Reply:
    """Says "ok", streamed when the request asks for a stream."""
    try:
        stream = bool(json.loads(seen.body).get("stream"))
    except (ValueError, AttributeError):
        stream = False
    return chat_stream("ok") if stream else chat_reply()


class FakeModel:
    """The server: `say` queues replies, `seen` keeps requests; with an empty queue `default` answers."""

    def __init__(self, default: Callable[[Seen], Reply] = default_reply) -> None:
        self.seen: list[Seen] = []
        self.default = default
        self.url = ""
        self._replies: deque[Reply] = deque()
        self._arrived = asyncio.Condition()
        self._stack = contextlib.AsyncExitStack()

    def say(self, *replies: Reply) -> None:
        """Queues replies for the next requests."""
        self._replies.extend(replies)

    async def request(self, number: int) -> Seen:
        """Waits until the request with this number (from 0) has arrived."""
        async with self._arrived:
            await asyncio.wait_for(self._arrived.wait_for(lambda: len(self.seen) > number), 10)
        return self.seen[number]

    async def __aenter__(self) -> Self:
        server = web.Server(self._answer, handler_cancellation=True, access_log=None, auto_decompress=False)
        self.url = await self._stack.enter_async_context(listening(server))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        body = b"".join([chunk async for chunk in request.content.iter_any()])
        seen = Seen(request.method, request.raw_path, tuple(request.headers.items()), body)
        async with self._arrived:
            self.seen.append(seen)
            self._arrived.notify_all()
        reply = self._replies.popleft() if self._replies else self.default(seen)
        try:
            return await _send(reply, request)
        except (asyncio.CancelledError, ConnectionError):
            seen.closed.set()
            raise


async def _send(reply: Reply, request: web.BaseRequest) -> web.StreamResponse:
    if reply.before is not None:
        await reply.before.wait()
    if reply.raw is not None:
        return _send_raw(reply.raw, request)
    if reply.chunks is None and reply.then == "close":
        return web.Response(status=reply.status, headers=_pairs(reply.headers), body=reply.body)
    response = web.StreamResponse(status=reply.status, headers=_pairs(reply.headers))
    await response.prepare(request)
    for number, chunk in enumerate((reply.body,) if reply.chunks is None else reply.chunks):
        await response.write(chunk)
        if number == 0 and reply.between is not None:
            await reply.between.wait()
    if reply.then == "hang":
        await asyncio.Event().wait()
    if reply.then == "abort" and request.transport is not None:
        request.transport.close()
    return response


def _send_raw(raw: bytes, request: web.BaseRequest) -> web.StreamResponse:
    if request.transport is None:
        raise ConnectionError("the client left")
    request.transport.write(raw)
    request.transport.close()
    return web.Response()


def _pairs(headers: Sequence[tuple[str, str]]) -> Any:
    return CIMultiDict(headers)


@contextlib.asynccontextmanager
async def listening(server: web.Server) -> AsyncIterator[str]:
    """Serves on a free loopback port and gives the URL."""
    runner = web.ServerRunner(server, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
