"""The fake model: a real HTTP server on loopback that records what it gets and answers what the case says."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from aiohttp import web

from tests.cases.case import Step
from tests.cases.encodings import encode
from tests.cases.evidence import Forward
from tests.cases.replies import error_reply, json_reply, stream_of

LABEL = "x-case-label"
INTERNAL = "x-goalkeeper-internal"  # the proxy puts it on calls of its own
GATE_SECONDS = 10.0  # how long an overlapped or abandoned request is held at most
CHUNK_GAP = 0.01  # seconds between two writes, so that they leave as separate network chunks
SUMMARY = "#summary"
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(slots=True)
class Script:
    """What the fake model does, by label."""

    replies: dict[str, Step] = field(default_factory=dict)
    delays: dict[str, float] = field(default_factory=dict)
    gates: dict[str, asyncio.Event] = field(default_factory=dict)  # answered only after the event is set
    leaves: dict[str, int] = field(default_factory=dict)  # events sent before it waits for the client to leave
    decoys: tuple[str, ...] = ()  # hosts that must get no request; a server of ours stands in for each


class FakeModel:
    """One fake model and its decoys; `async with` starts and ends them."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.forwards: dict[str, list[Forward]] = {}
        self.decoys: dict[str, list[Forward]] = {host: [] for host in script.decoys}
        self.in_flight: list[str] = []  # labels that the client waits for, oldest first
        self._arrivals: dict[str, asyncio.Event] = {}
        self._runners: list[web.AppRunner] = []
        self._decoy_urls: dict[str, str] = {}
        self.url = ""

    async def __aenter__(self) -> Self:
        self.url = await self._listen(self._answer)
        for host in self.decoys:
            self._decoy_urls[host] = await self._listen(self._decoy(host))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for runner in self._runners:
            await runner.cleanup()

    def arrival(self, label: str) -> asyncio.Event:
        """Gives the event that is set when the first body for a label arrives."""
        return self._arrivals.setdefault(label, asyncio.Event())

    async def _listen(self, handler: Handler) -> str:
        app = web.Application(client_max_size=1 << 30)
        app.router.add_route("*", "/{path:.*}", handler)
        runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        self._runners.append(runner)
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        return f"http://127.0.0.1:{port}"

    def _decoy(self, host: str) -> Handler:
        async def note(request: web.Request) -> web.StreamResponse:
            self.decoys[host].append(await _forward(request, ""))
            return web.json_response({"text": "decoy"})

        return note

    def _label(self, headers: Mapping[str, str]) -> str:
        """Gives the label of the request in service; calls of the proxy's own are its summary calls."""
        label = headers.get(LABEL, "")
        own = INTERNAL in headers or not label
        if not label:
            unserved = [one for one in self.in_flight if one not in self.forwards]
            label = next(iter(unserved or self.in_flight[-1:]), "?")
        return label + SUMMARY if own else label

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        label = self._label(request.headers)
        forward = await _forward(request, label)
        self.forwards.setdefault(label, []).append(forward)
        self.arrival(label).set()
        try:
            await self._wait(label)
            return await self._reply(request, forward, self._reply_step(label))
        except (asyncio.CancelledError, ConnectionError):
            forward.closed_at = asyncio.get_running_loop().time()
            raise

    def _reply_step(self, label: str) -> Step:
        """A retry may have a reply of its own, under `<label>-retry`."""
        again = len(self.forwards[label]) > 1
        step = self.script.replies.get(f"{label}-retry") if again else None
        return step or self.script.replies.get(label) or {}

    async def _wait(self, label: str) -> None:
        if label in self.script.delays:
            await asyncio.sleep(self.script.delays[label])
        if label in self.script.gates:
            try:
                await asyncio.wait_for(self.script.gates[label].wait(), GATE_SECONDS)
            except TimeoutError:
                return  # the proxy serves the two requests one after the other: let the first one end

    async def _reply(self, request: web.Request, forward: Forward, step: Step) -> web.StreamResponse:
        if forward.label in self.script.leaves:
            return await self._hold(request, forward, self.script.leaves[forward.label])
        if step.get("type") == "upstream_sse":
            return await self._stream(request, forward, _pieces(forward.path, step), step)
        if not step.keys() & {"status", "body", "raw_body", "encoding", "headers"} and _wants_stream(forward.body):
            stream = stream_of(forward.path)
            pieces = [text.encode() for text in (*stream.head, *stream.deltas, *stream.tail)]
            return await self._stream(request, forward, pieces, {})
        forward.status = int(step.get("status", 200))
        forward.plain = _plain(forward, step)
        forward.sent = encode(forward.plain, str(step.get("encoding", "")))
        headers = {"content-type": "application/json"} | self._headers(step)
        if "encoding" in step:
            headers["content-encoding"] = str(step["encoding"])
        return web.Response(status=forward.status, body=forward.sent, headers=headers)

    async def _stream(
        self, request: web.Request, forward: Forward, pieces: Iterable[bytes], step: Step
    ) -> web.StreamResponse:
        forward.status = int(step.get("status", 200))
        headers = {"content-type": "text/event-stream"} | self._headers(step)
        response = web.StreamResponse(status=forward.status, headers=headers)
        await response.prepare(request)
        for piece in pieces:
            await response.write(piece)
            forward.sent += piece
            forward.plain += piece
            await asyncio.sleep(CHUNK_GAP)
        if step.get("then") == "abort":
            if request.transport is not None:
                request.transport.abort()
            return response
        await response.write_eof()
        return response

    async def _hold(self, request: web.Request, forward: Forward, events: int) -> web.StreamResponse:
        """Sends some events, then waits for the client to leave."""
        if events:
            stream = stream_of(forward.path, [f"t{number} " for number in range(1, events + 1)])
            response = web.StreamResponse(headers={"content-type": "text/event-stream"})
            await response.prepare(request)
            for text in (*stream.head, *stream.deltas):
                await response.write(text.encode())
                forward.sent += text.encode()
        forward.status = 200
        await asyncio.sleep(GATE_SECONDS)
        return web.json_response(error_reply(500), status=500)

    def _headers(self, step: Step) -> dict[str, str]:
        headers = {str(name).lower(): str(value) for name, value in step.get("headers", {}).items()}
        for host, url in self._decoy_urls.items():
            if "location" in headers:
                headers["location"] = headers["location"].replace(f"http://{host}", url).replace(f"https://{host}", url)
        return headers


async def _forward(request: web.Request, label: str) -> Forward:
    return Forward(
        label=label,
        method=request.method,
        path=request.raw_path,
        headers=request.headers.copy(),
        body=await request.read(),
    )


def _plain(forward: Forward, step: Step) -> bytes:
    if "raw_body" in step:
        return str(step["raw_body"]).encode()
    if "body" in step:
        body = step["body"]
        return body.encode() if isinstance(body, str) else json.dumps(body, ensure_ascii=False).encode()
    if forward.status < 300:
        return json.dumps(json_reply(forward.method, forward.path, forward.body)).encode()
    return b"" if forward.status < 400 else json.dumps(error_reply(forward.status)).encode()


def _pieces(path: str, step: Step) -> list[bytes]:
    if "chunks_hex" in step:
        return [bytes.fromhex(chunk) for chunk in step["chunks_hex"]]
    if "raw_events" in step:
        return [event.encode() for event in step["raw_events"]]
    stream = stream_of(path, step["events"])
    tail = () if step.get("then") else stream.tail
    return [text.encode() for text in (*stream.head, *stream.deltas, *tail)]


def _wants_stream(body: bytes) -> bool:
    try:
        value = json.loads(body)
    except ValueError:
        return False
    return isinstance(value, dict) and value.get("stream") is True
