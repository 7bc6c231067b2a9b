"""One exchange between client and upstream: what was asked, where the answer goes, and how bytes get there.

Bytes come first: they go on as they arrive, and a copy is kept for those who want to read it afterwards.
"""

from __future__ import annotations

import asyncio
import contextlib
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Protocol

import msgspec

from proxy.errors import ClientGone, GoalkeeperError, UpstreamBroken, UpstreamRefused
from proxy.upstream import Headers, Upstream

COMMENT = b": keep-alive\n\n"
COPY_BYTES = 64 << 20
STREAM_HEADERS = (("Content-Type", "text/event-stream"), ("Cache-Control", "no-cache"))
_BORDERS = (b"\n\n", b"\r\n\r\n", b"\r\r")  # the blank line that ends an event
_ENDS = (b"data: [DONE]", b"data:[DONE]", b'"message_stop"}')  # chat · Messages
_TAIL = 64  # bytes that are enough to see a border and a closing mark

StreamError = Callable[[GoalkeeperError], bytes]


class Call(msgspec.Struct, frozen=True):
    """A client's request: path with query, headers as they came, whole body."""

    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, name: str) -> str:
        """Gives the first value of a header (name in lower case), "" without one."""
        return next((value for key, value in self.headers if key.lower() == name), "")


class Sink(Protocol):
    """Where the answer goes. Every method may raise ClientGone."""

    opened: bool

    async def open(self, status: int, headers: Headers) -> None:
        """Sends status and headers."""

    async def write(self, data: bytes) -> None:
        """Sends bytes of the body, at once."""

    async def close(self) -> None:
        """Ends the answer properly."""

    def abort(self) -> None:
        """Breaks the connection, so that the client sees that the answer isn't complete."""


class Incoming(Protocol):
    """An answer whose body is still on its way, from whatever upstream; `close` it in any case."""

    status: int
    reason: str

    @property
    def headers(self) -> Headers:
        """The answer's headers as they came, without those of the connection."""

    @property
    def sse(self) -> bool:
        """Whether the body is an event stream."""

    def header(self, name: str) -> str:
        """Gives the first value of a header, "" without one."""

    def chunks(self) -> AsyncIterator[bytes]:
        """Gives the body's bytes as they arrive. Raises UpstreamBroken."""

    async def head(self, limit: int) -> bytes:
        """Gives the first bytes of the body; `chunks` gives them again. Raises UpstreamBroken."""

    async def read(self) -> bytes:
        """Gives the whole body. Raises UpstreamBroken."""

    def close(self) -> None:
        """Ends the exchange."""


class Exchange(Protocol):
    """Answers calls."""

    async def handle(self, call: Call, sink: Sink) -> None:
        """Answers one call into the sink. Raises GoalkeeperError."""


class Copy:
    """The bytes of an answer, kept up to a bound; beyond it the copy is given up, never the answer."""

    __slots__ = ("_chunks", "_limit", "_size", "dropped")

    def __init__(self, limit: int = COPY_BYTES) -> None:
        self._chunks: list[bytes] = []
        self._size = 0
        self._limit = limit
        self.dropped = False

    def add(self, chunk: bytes) -> None:
        """Keeps one more chunk, or gives up."""
        self._size += len(chunk)
        if self._size > self._limit:
            self.dropped = True
            self._chunks.clear()
        else:
            self._chunks.append(chunk)

    def text(self, encoding: str = "") -> bytes:
        """Gives the bytes unpacked, as far as they came; b"" when they were given up or can't be unpacked here."""
        data = b"" if self.dropped else b"".join(self._chunks)
        if encoding.lower() in ("", "identity"):
            return data
        return _inflate(data, self._limit) if encoding.lower() in ("gzip", "x-gzip", "deflate") else b""


def _inflate(data: bytes, limit: int) -> bytes:
    for window in (zlib.MAX_WBITS | 32, -zlib.MAX_WBITS):  # gzip or zlib by its header · bare deflate
        with contextlib.suppress(zlib.error):
            return zlib.decompressobj(window).decompress(data, limit)
    return b""


class _Pulse:
    """Writes a comment line whenever an event stream was silent for so many seconds, but never inside an event."""

    __slots__ = ("_last", "_loop", "_seconds", "_sink", "_tail", "_task")

    def __init__(self, sink: Sink, seconds: float) -> None:
        self._sink = sink
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._last = self._loop.time()
        self._tail = b"\n\n"
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self._seconds > 0:
            self._task = self._loop.create_task(self._run())

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def saw(self, chunk: bytes) -> None:
        self._tail = chunk[-_TAIL:] if len(chunk) >= _TAIL else (self._tail + chunk)[-_TAIL:]
        self._last = self._loop.time()

    @property
    def between_events(self) -> bool:
        return self._tail.endswith(_BORDERS)

    @property
    def done(self) -> bool:
        return self._tail.rstrip().endswith(_ENDS)

    async def _run(self) -> None:
        with contextlib.suppress(ClientGone):  # whoever writes the stream learns it too
            while not self.done:
                await asyncio.sleep(max(self._last + self._seconds - self._loop.time(), 0.001))
                due = self._loop.time() - self._last >= self._seconds
                if due and self.between_events and not self.done:
                    await self._sink.write(COMMENT)
                if due:
                    self._last = self._loop.time()


@contextlib.contextmanager
def _pulse(sink: Sink, seconds: float) -> Iterator[_Pulse]:
    pulse = _Pulse(sink, seconds)
    pulse.start()
    try:
        yield pulse
    finally:
        pulse.stop()


async def early_reply(
    sending: Awaitable[Incoming], sink: Sink, *, keepalive: float, headers: Headers = (), stream_error: StreamError
) -> Incoming:
    """Waits for the reply to a streaming request and, after `keepalive` silent seconds, opens the client's stream.

    From then on comment lines keep it open. A reply that isn't a stream then becomes an error inside the stream and is
    raised as UpstreamRefused; errors of the sending itself are written into the stream too, and raised.
    """
    task = asyncio.ensure_future(sending)
    reply: Incoming | None = None
    try:
        done, _ = await asyncio.wait((task,), timeout=keepalive or None)
        if not done:
            await sink.open(200, (*STREAM_HEADERS, *headers))
            await sink.write(COMMENT)
            with _pulse(sink, keepalive):
                await asyncio.wait((task,))
        reply = await (_stream_of(task.result()) if sink.opened else task)
    except ClientGone:
        raise
    except GoalkeeperError as error:
        if sink.opened:
            await sink.write(stream_error(error))
            await sink.close()
        raise
    finally:
        if reply is None:
            await _end(task)
    return reply


async def _stream_of(reply: Incoming) -> Incoming:
    if reply.status == 200 and reply.sse and not reply.header("content-encoding"):
        return reply
    copy = Copy()
    copy.add(await reply.read())
    body = copy.text(reply.header("content-encoding"))
    raise UpstreamRefused(f"the upstream answered {reply.status} {reply.reason}", reply.status, body)


async def _end(task: asyncio.Future[Incoming]) -> None:
    """Ends a sending whose reply nobody waits for any more."""
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError, GoalkeeperError):
        (await task).close()


async def relay(
    reply: Incoming,
    sink: Sink,
    *,
    headers: Headers = (),
    keepalive: float = 0,
    copy: Copy | None = None,
    stream_error: StreamError | None = None,
) -> None:
    """Sends a reply on, byte for byte as it comes, with `headers` of ours added; closes sink and reply.

    An answer that breaks off is told in the stream when a whole event was the last thing sent, then the client's
    connection is broken, and UpstreamBroken is raised: nothing is sent again and no end is made up.
    """
    try:
        if not sink.opened:
            await sink.open(reply.status, (*reply.headers, *headers))
        if reply.sse and not reply.header("content-encoding"):
            await _relay_events(reply, sink, keepalive, copy, stream_error)
        else:
            await _relay_bytes(reply, sink, copy)
        await sink.close()
    except UpstreamBroken:
        sink.abort()
        raise
    finally:
        reply.close()


async def _relay_bytes(reply: Incoming, sink: Sink, copy: Copy | None) -> None:
    async for chunk in reply.chunks():
        if copy is not None:
            copy.add(chunk)
        await sink.write(chunk)


async def _relay_events(
    reply: Incoming, sink: Sink, keepalive: float, copy: Copy | None, stream_error: StreamError | None
) -> None:
    with _pulse(sink, keepalive) as pulse:
        try:
            async for chunk in reply.chunks():
                pulse.saw(chunk)
                if copy is not None:
                    copy.add(chunk)
                await sink.write(chunk)
        except UpstreamBroken as error:
            if stream_error is not None and pulse.between_events and not pulse.done:
                await sink.write(stream_error(error))
            raise


class PassThrough:
    """Answers a call with what the upstream says, and looks at nothing."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream

    async def handle(self, call: Call, sink: Sink) -> None:
        """Sends the call on and the answer back, both as they are. Raises GoalkeeperError."""
        await relay(await self._upstream.send(call.method, call.path, call.headers, call.body), sink)
