"""The HTTP server: tells model requests, other API requests and our own doors apart, and carries bytes to and fro."""

from __future__ import annotations

import asyncio
import gc
import signal
import sys
from collections.abc import Callable, Mapping
from urllib.parse import unquote

import msgspec
from aiohttp import web

from proxy.assembly import Assembly, assemble, open_upstream
from proxy.dialects.messages import Messages
from proxy.errors import ConfigError, GoalkeeperError, NoWebSocket, TooLarge
from proxy.exchange import Call, Exchange
from proxy.settings import Settings
from proxy.settings.model import Server
from proxy.settings.routes import API_ROOTS
from proxy.telemetry import Log
from proxy.web.doors import Doors
from proxy.web.relayed import ResponseSink

NAMES = {"s": "x-goalkeeper-session", "p": "x-goalkeeper-project"}  # /s/NAME/v1/… and /p/NAME/v1/…
GRACE_SECONDS = 1.5  # aiohttp waits twice: for the end of an exchange, then for its cancelling
TENDING_SECONDS = 3600.0
_LINE_BYTES = 64 << 10
_SWITCH_SECONDS = 0.0005  # the writer's thread gives way to requests ten times as fast as Python's default has it
_READ_BYTES = 1 << 20


class Gate:
    """Takes every HTTP request and leads it to the pipeline, to the upstream, or to our own doors."""

    def __init__(
        self, settings: Server, models: Mapping[str, Exchange], passing: Exchange, doors: Doors, log: Log
    ) -> None:
        self._settings = settings
        self._models = models
        self._passing = passing
        self._doors = doors
        self._counters = doors.counters
        self._log = log

    def server(self) -> web.Server:
        """Gives the aiohttp server; it needs no routing table, and cancels what a client that left had asked for."""
        return web.Server(
            self.handle,
            handler_cancellation=True,
            access_log=None,
            auto_decompress=False,
            max_line_size=_LINE_BYTES,
            max_field_size=_LINE_BYTES,
            read_bufsize=_READ_BYTES,
        )

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answers one HTTP request; errors raised on purpose become JSON in the form of the API that was asked."""
        sink = ResponseSink(request)
        try:
            return await self._answer(request, sink)
        except GoalkeeperError as error:
            self._counters.add("errors_total", error.code)
            self._log.info("error", method=request.method, code=error.code, status=error.status)
            if sink.response is None:
                return _refusal(error, request.raw_path, self._log.mask)
            if sink.aborted and request.transport is not None:
                request.transport.close()  # what was written still leaves, the end of the answer doesn't
            return sink.response

    async def _answer(self, request: web.BaseRequest, sink: ResponseSink) -> web.StreamResponse:
        target = request.raw_path if request.raw_path.startswith("/") else request.path_qs
        path, names = _without_names(target)
        if not path.startswith(API_ROOTS):
            authorization = request.headers.get("Authorization", "")
            page = self._doors.answer(request.method, path, request.headers.get("Host", ""), authorization)
            return web.Response(status=page.status, body=page.body, headers={"Content-Type": page.content_type})
        if request.headers.get("Upgrade", "").lower() == "websocket":
            raise NoWebSocket("Goalkeeper speaks HTTP: use the same URL with POST")
        body = await _body(request, self._settings.max_body_bytes)
        call = Call(request.method, path, (*names, *request.headers.items()), body)
        route = path.partition("?")[0]  # a query may hold a key: it is never logged
        if request.method == "POST" and route in self._models:
            await self._models[route].handle(call, sink)
        else:
            self._counters.add("passed_total")
            await self._passing.handle(call, sink)
            self._log.info("passed", method=request.method, path=route)
        if sink.response is None:
            raise RuntimeError("an exchange ended without an answer")
        return sink.response


def _without_names(target: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Turns /s/SESSION/p/PROJECT/v1/… into /v1/… and headers of ours, in either order."""
    names: list[tuple[str, str]] = []
    while target[:3] in ("/s/", "/p/"):
        name, slash, rest = target[3:].partition("/")
        if not name or not slash:
            break
        names.append((NAMES[target[1]], unquote(name)))
        target = "/" + rest
    return target, tuple(names)


async def _body(request: web.BaseRequest, limit: int) -> bytes:
    """Reads the whole request body. Raises TooLarge as soon as it is known to be too large."""
    if not request.body_exists:
        return b""
    refusal = TooLarge(f"the request body is larger than server.max_body_bytes ({limit})")
    if (request.content_length or 0) > limit:
        raise refusal
    if request.headers.get("Expect", "").lower() == "100-continue":
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0  # the answer's headers are still to come
    chunks: list[bytes] = []
    size = 0
    while chunk := await request.content.readany():
        size += len(chunk)
        if size > limit:
            raise refusal
        chunks.append(chunk)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def _refusal(error: GoalkeeperError, target: str, mask: Callable[[str], str]) -> web.Response:
    if _without_names(target)[0].startswith(Messages.path):  # token counts too
        body = Messages().error(error)
    else:
        told = {"message": mask(str(error)), "type": "goalkeeper_error", "param": None, "code": error.code}
        body = msgspec.json.encode({"error": told})
    return web.Response(status=error.status, body=body, headers={"Content-Type": "application/json"})


def run_server(settings: Settings) -> int:
    """Serves until SIGTERM or SIGINT; gives the exit code."""
    sys.setswitchinterval(_SWITCH_SECONDS)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(serve(settings))
    return 0


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        import uvloop  # noqa: PLC0415 (not there on every system)
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop


async def serve(settings: Settings) -> None:
    """Opens the port, says so on stdout, and serves until SIGTERM or SIGINT. Raises ConfigError, StoreError."""
    upstream = open_upstream(settings)
    log = Log()
    try:
        assembly = assemble(settings, upstream, log)
        try:
            await _serve(settings.server, assembly, log)
        finally:
            assembly.close()
            for other in assembly.upstreams:
                await other.close()
    finally:
        await upstream.close()
        log.close()


async def _serve(settings: Server, assembly: Assembly, log: Log) -> None:
    gate = Gate(settings, assembly.models, assembly.passing, assembly.doors, log)
    runner = web.ServerRunner(gate.server(), shutdown_timeout=GRACE_SECONDS)
    await runner.setup()
    tending = asyncio.create_task(_tend(assembly, log))
    try:
        url = await _listen(runner, settings)
        stopped = _stop_signal()
        print(f"listening on {url}", flush=True)  # noqa: T201 (scripts wait for this line)
        gc.freeze()  # modules, rules and profiles stay: later collections needn't look at them
        gc.enable()
        assembly.watch()
        await stopped.wait()
    finally:
        tending.cancel()
        await runner.cleanup()


async def _tend(assembly: Assembly, log: Log) -> None:
    """Forgets, at the start and then once an hour, what retention no longer allows to keep."""
    while True:
        try:
            gone = await asyncio.wrap_future(assembly.purge())
        except GoalkeeperError as error:
            log.error("purge", code=error.code)  # noqa: TRY400 (its words may quote stored text)
        else:
            if gone.sessions or gone.facts:
                log.info("purge", sessions=gone.sessions, messages=gone.messages, facts=gone.facts)
        await asyncio.sleep(TENDING_SECONDS)


async def _listen(runner: web.ServerRunner, settings: Server) -> str:
    try:
        await web.TCPSite(runner, settings.host.strip("[]"), settings.port).start()
    except OSError as error:
        raise ConfigError(
            f"server.host, server.port: can't listen on {settings.host}:{settings.port}: {error}"
        ) from error
    host, port = runner.addresses[0][:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _stop_signal() -> asyncio.Event:
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    return stopped
