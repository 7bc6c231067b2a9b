"""The client's side of an exchange: an answer that is written to the connection as it comes.

aiohttp's own responses cost several times what the writing costs; here a head is made once, a body of known length
leaves in one packet with it, and each piece of a stream is one chunk (RFC 9112 7.1).
"""

from __future__ import annotations

from aiohttp import web
from aiohttp.helpers import rfc822_formatted_time
from aiohttp.http import HttpVersion11

from proxy.errors import ClientGone
from proxy.upstream import Headers

_EMPTY = (204, 304)


class Relayed(web.StreamResponse):
    """An answer whose status and headers are an upstream's; it writes itself."""

    def __init__(self, request: web.BaseRequest, status: int, headers: Headers) -> None:
        super().__init__(status=status)
        names = {name.lower() for name, _ in headers}
        has_body = request.method != "HEAD" and status not in _EMPTY
        self._keep_alive = request.keep_alive
        self._writer = request.writer
        self._protocol = request.protocol
        self._over = False
        self._sized = "content-length" in names or not has_body
        self._in_chunks = not self._sized and request.version >= HttpVersion11
        self._silent = not has_body
        if not (self._sized or self._in_chunks):
            self._keep_alive = False  # only the end of the connection tells where this body ends
        self._head = self._lines(request, headers, names)

    def _lines(self, request: web.BaseRequest, headers: Headers, names: set[str]) -> bytes:
        version = request.version
        lines = [f"HTTP/{version.major}.{version.minor} {self.status} {self.reason}"]
        lines += [f"{name}: {value}" for name, value in headers]
        if self._in_chunks:
            lines.append("Transfer-Encoding: chunked")
        if "date" not in names:
            lines.append(f"Date: {rfc822_formatted_time()}")
        if not self._keep_alive:
            lines.append("Connection: close")
        elif version < HttpVersion11:
            lines.append("Connection: keep-alive")
        head = "\r\n".join(lines)
        if head.count("\r") >= len(lines) or head.count("\n") >= len(lines):
            raise ValueError("a header of the answer holds a line break")
        return head.encode("utf-8", "surrogateescape") + b"\r\n\r\n"

    async def begin(self) -> None:
        """Sends status and headers, unless they can leave together with the body. Raises ClientGone."""
        if not self._sized:
            await self._put(self._taken_head())

    async def pass_on(self, data: bytes) -> None:
        """Sends bytes of the body. Raises ClientGone."""
        if self._silent or not data:
            return
        if self._in_chunks:
            await self._put(b"%x\r\n%b\r\n" % (len(data), data))
        else:
            await self._put(self._taken_head() + data)

    async def end(self) -> None:
        """Ends the answer properly. Raises ClientGone."""
        if self._over:
            return
        self._over = True
        rest = self._taken_head() + (b"0\r\n\r\n" if self._in_chunks else b"")
        if rest:
            await self._put(rest)

    def cut(self) -> None:
        """Leaves the answer without an end."""
        self._over = True

    def _taken_head(self) -> bytes:
        head, self._head = self._head, b""
        return head

    async def _put(self, data: bytes) -> None:
        transport = self._protocol.transport
        if transport is None or transport.is_closing():
            raise ClientGone("the client left")
        self._writer.output_size += len(data)  # aiohttp asks this before it would answer an error itself
        transport.write(data)
        if self._protocol.writing_paused:
            await self._wait()

    async def _wait(self) -> None:
        try:
            await self._writer.drain()
        except ConnectionError as error:
            raise ClientGone("the client left in mid-answer") from error

    async def prepare(self, request: web.BaseRequest) -> None:
        """Does nothing: the head is written with the body."""

    async def write_eof(self, data: bytes = b"") -> None:  # noqa: ARG002  aiohttp's name
        """Ends the answer, as aiohttp asks when the exchange is over."""
        try:
            await self.end()
        except ClientGone as error:
            raise ConnectionResetError(str(error)) from error


class ResponseSink:
    """The client's side of an exchange, as the pipeline sees it."""

    __slots__ = ("_request", "aborted", "opened", "response")

    def __init__(self, request: web.BaseRequest) -> None:
        self._request = request
        self.opened = False
        self.aborted = False
        self.response: Relayed | None = None

    async def open(self, status: int, headers: Headers) -> None:
        """Sends status and headers; with a known length they leave in one packet with the body. Raises ClientGone."""
        self.response = Relayed(self._request, status, headers)
        self.opened = True
        await self.response.begin()

    async def write(self, data: bytes) -> None:
        """Sends bytes of the body. Raises ClientGone."""
        if self.response is None:
            raise RuntimeError("write() before open()")
        await self.response.pass_on(data)

    async def close(self) -> None:
        """Ends the answer properly. Raises ClientGone."""
        if self.response is None:
            raise RuntimeError("close() before open()")
        await self.response.end()

    def abort(self) -> None:
        """Marks the answer as broken; the connection is cut as soon as the exchange is over."""
        self.aborted = True
        if self.response is not None:
            self.response.cut()
