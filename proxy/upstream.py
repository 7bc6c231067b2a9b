"""The way to the model: bytes out, bytes back as they come, nothing followed, nothing unpacked, nothing sent twice.

The pool, TLS and the parser of answers are aiohttp's; `ClientSession` between them and us is left out, since it costs
more than the rest of the way: what it would add (redirects, cookies, unpacking, own headers) is what must not happen.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from functools import partial
from weakref import WeakSet

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.http import RawResponseMessage
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader
from yarl import URL

from proxy.errors import BadRequest, UpstreamBroken, UpstreamTimeout, UpstreamUnreachable

Headers = Sequence[tuple[str, str]]

# RFC 9110 7.6.1: what concerns one connection and not the message
HOP_BY_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_NOT_FORWARDED = HOP_BY_HOP | {"host", "content-length", "expect"}
_OURS = "x-goalkeeper-"
_BODILESS = ("GET", "HEAD", "OPTIONS", "TRACE")
_BUFFER_BYTES = 1 << 20
_INTERIM = (100, 102, 103)  # not yet the answer: RFC 9110 15.2; 101 can't come, as no Upgrade is ever sent
_STALE_SECONDS = 1.0
_HEAD_BYTES = 64 << 10  # longest header line that we take: cookies and rate limit headers grow


class Reply:
    """An upstream's answer whose body is still on its way; `close` it in any case."""

    __slots__ = ("_connection", "_content", "_found", "_read", "headers", "reason", "status")

    def __init__(self, connection: Connection, message: RawResponseMessage, content: StreamReader) -> None:
        self._connection = connection
        self._content = content
        self._found = message.headers
        self._read: list[bytes] = []  # what `head` took from the stream
        self.status = message.code
        self.reason = message.reason or ""
        self.headers = _kept(message.headers.items(), HOP_BY_HOP)
        content.on_eof(self._ended)  # at once, when all of it is there

    def header(self, name: str) -> str:
        """Gives the first value of a header, "" without one; the case of the name doesn't matter."""
        return self._found.get(name, "")

    @property
    def sse(self) -> bool:
        """Whether the body is an event stream."""
        return self.header("content-type").lower().startswith("text/event-stream")

    def chunks(self) -> AsyncIterator[bytes]:
        """Gives the body's bytes as they arrive, still compressed if they were. Raises UpstreamBroken."""
        return self._from_the_start() if self._read else self._arriving()

    async def _from_the_start(self) -> AsyncIterator[bytes]:
        for chunk in self._read:
            yield chunk
        async for chunk in self._arriving():
            yield chunk

    async def head(self, limit: int) -> bytes:
        """Gives the first bytes of the body (all of a short one); `chunks` gives them again. Raises UpstreamBroken."""
        size = 0
        async for chunk in self._arriving():
            self._read.append(chunk)
            size += len(chunk)
            if size >= limit:
                break
        return b"".join(self._read)

    async def _arriving(self) -> AsyncIterator[bytes]:
        try:
            while chunk := await _arrived(self._content):
                yield chunk
        except (aiohttp.ClientError, OSError) as error:  # a timeout is an OSError
            # aiohttp raises before it gives what had arrived by then; the client is to get all of it.
            if rest := self._content._read_nowait(-1):  # noqa: SLF001
                yield rest
            silent = isinstance(error, TimeoutError)
            what = "fell silent in the middle of its answer" if silent else f"broke off its answer: {_words(error)}"
            raise UpstreamBroken(f"the upstream {what}") from error

    async def read(self) -> bytes:
        """Gives the whole body. Raises UpstreamBroken."""
        return b"".join([chunk async for chunk in self.chunks()])

    def _ended(self) -> None:
        transport = self._connection.transport
        if transport is not None and transport.get_write_buffer_size():
            self._connection.close()  # answered before it had read the question: the rest of that is still to leave
        else:
            self._connection.release()

    def close(self) -> None:
        """Ends the exchange; a body that wasn't read to its end takes its connection with it."""
        self._connection.close()


class Upstream:
    """One model API with its pool of connections."""

    def __init__(self, url: str, *, connect_seconds: float = 10, silence_seconds: float = 600) -> None:
        self.url = url
        address = URL(url)
        self._prefix = address.raw_path.rstrip("/")
        self._host = address.host_port_subcomponent or ""
        self._silence = silence_seconds
        self._timeout = aiohttp.ClientTimeout(total=None, connect=connect_seconds)
        self._connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=30)
        self._connector._factory = partial(Patient, loop=asyncio.get_running_loop())  # type: ignore[assignment]  # noqa: SLF001
        self._used: WeakSet[ResponseHandler] = WeakSet()
        # What the pool is asked with: where to, and whether over TLS. It is never sent.
        self._place = aiohttp.ClientRequest("GET", address, loop=asyncio.get_running_loop())

    async def send(
        self, method: str, path: str, headers: Headers, body: bytes, *, identity: bool = False, own: Headers = ()
    ) -> Reply:
        """Sends one request and gives the answer as soon as its status and headers are there.

        `path` goes out as it stands, query included; `identity` asks for an answer that can be read without unpacking;
        `own` are headers of ours, which go out although a client's of these names don't.
        A request is sent again only when a pooled connection turned out to be closed: at once and without a byte of
        answer. Raises UpstreamUnreachable, UpstreamTimeout, BadRequest.
        """
        kept = _kept(headers, _NOT_FORWARDED, _OURS)
        if identity:
            kept = [(name, value) for name, value in kept if name.lower() != "accept-encoding"]
            kept.append(("Accept-Encoding", "identity"))
        head = self._head(method, path, [*kept, *own], body)
        try:
            connection = await self._connected()
            pooled, started = connection.protocol in self._used, time.monotonic()
            try:
                return await self._exchange(connection, method, head, body)
            except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
                if not pooled or time.monotonic() - started >= _STALE_SECONDS:
                    raise
            return await self._exchange(await self._connected(), method, head, body)
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError) as error:
            raise UpstreamUnreachable(f"the upstream can't be reached: {_words(error)}") from error
        except TimeoutError as error:
            raise UpstreamTimeout("the upstream didn't answer in time") from error
        except (aiohttp.ClientError, HttpProcessingError) as error:
            raise UpstreamUnreachable(f"the upstream didn't answer in HTTP: {_words(error)}") from error

    async def close(self) -> None:
        """Closes all connections."""
        await self._connector.close()

    def _head(self, method: str, path: str, headers: Headers, body: bytes) -> bytes:
        """Gives request line and headers as bytes. Raises BadRequest for what would be more than one line."""
        lines = [f"{method} {self._prefix}{path} HTTP/1.1", f"Host: {self._host}"]
        lines += [f"{name}: {value}" for name, value in headers]
        if body or method not in _BODILESS:
            lines.append(f"Content-Length: {len(body)}")
        head = "\r\n".join(lines)
        if head.count("\n") >= len(lines) or head.count("\r") >= len(lines) or "\0" in head or " " in path:
            raise BadRequest(f"this isn't a path, or a header holds a line break: {path!r}")
        return head.encode("utf-8", "surrogateescape") + b"\r\n\r\n"

    async def _connected(self) -> Connection:
        return await self._connector.connect(self._place, [], self._timeout)

    async def _exchange(self, connection: Connection, method: str, head: bytes, body: bytes) -> Reply:
        try:
            protocol, transport = _wires(connection)
            self._used.add(protocol)
            protocol.set_response_params(
                skip_payload=method == "HEAD",
                read_until_eof=True,
                auto_decompress=False,
                read_timeout=self._silence,
                read_bufsize=_BUFFER_BYTES,
                max_line_size=_HEAD_BYTES,
                max_field_size=_HEAD_BYTES,
            )
            transport.writelines((head, body))  # in one packet, so that the upstream wakes once
            protocol.start_timeout()
            message, content = await protocol.read()
            while message.code in _INTERIM:
                message, content = await protocol.read()
        except BaseException:
            connection.close()
            raise
        return Reply(connection, message, content)


async def _arrived(content: StreamReader) -> bytes:
    """Waits for bytes of a body and gives all that are there, b"" at its end."""
    if content is EMPTY_PAYLOAD:  # of a status or method without a body
        return b""
    buffer = content._buffer  # noqa: SLF001
    while not buffer and not content.is_eof() and content.exception() is None:
        await content._wait("readany")  # noqa: SLF001
    if len(buffer) > 1:
        # One piece in place of thousands: aiohttp asks its parser to go on for each that it gives away.
        whole = b"".join(buffer)
        buffer.clear()
        buffer.append(whole)
    return await content.readany()


class Patient(ResponseHandler):
    """aiohttp's side of a connection, with one timer for the silence of a whole answer.

    aiohttp's own is set anew with every packet, which costs more than the packet.
    """

    __slots__ = ("_heard",)

    def _reschedule_timeout(self) -> None:
        self._heard = self._loop.time()
        if self._read_timeout_handle is None and self._read_timeout:
            self._read_timeout_handle = self._loop.call_later(self._read_timeout, self._on_read_timeout)

    def _on_read_timeout(self) -> None:
        self._read_timeout_handle = None
        left = self._heard + (self._read_timeout or 0) - self._loop.time()
        if left > 0:
            self._read_timeout_handle = self._loop.call_later(left, self._on_read_timeout)
        else:
            super()._on_read_timeout()


def _wires(connection: Connection) -> tuple[ResponseHandler, asyncio.Transport]:
    protocol, transport = connection.protocol, connection.transport
    if protocol is None or transport is None:
        raise aiohttp.ServerDisconnectedError
    return protocol, transport


def _kept(headers: Iterable[tuple[str, str]], dropped: frozenset[str], prefix: str = "\0") -> list[tuple[str, str]]:
    """Gives the pairs that belong to the message; what `Connection` names belongs to the connection."""
    pairs = [(name, value, name.lower()) for name, value in headers]
    for _, value, name in pairs:
        if name == "connection" and value.lower() not in ("keep-alive", "close"):
            dropped = dropped | {word.strip().lower() for word in value.split(",")}
    return [(name, value) for name, value, low in pairs if low not in dropped and not low.startswith(prefix)]


def _words(error: BaseException) -> str:
    return str(error) or type(error).__name__
