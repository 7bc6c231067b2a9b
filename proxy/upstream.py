"""The way to the model: bytes out, bytes back as they come, nothing followed, nothing unpacked, nothing sent twice."""

from __future__ import annotations

import io
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from types import SimpleNamespace

import aiohttp
from multidict import CIMultiDict
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
_NO_AUTO_HEADERS = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")
_LARGE = 1 << 20  # from here on aiohttp wants a file object, which it sends piece by piece
_STALE_SECONDS = 1.0
_HEAD_BYTES = 64 << 10  # longest header line that we take: cookies and rate limit headers grow


class Reply:
    """An upstream's answer whose body is still on its way; `close` it in any case."""

    __slots__ = ("_read", "_response", "headers", "reason", "status")

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self._read: list[bytes] = []  # what `head` took from the stream
        self.status = response.status
        self.reason = response.reason or ""
        self.headers = _kept(response.headers.items(), HOP_BY_HOP)

    def header(self, name: str) -> str:
        """Gives the first value of a header, "" without one; the case of the name doesn't matter."""
        return self._response.headers.get(name, "")

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
            content = self._response.content
            while chunk := await content.readany():
                yield chunk
        except TimeoutError as error:
            raise UpstreamBroken("the upstream fell silent in the middle of its answer") from error
        except (aiohttp.ClientError, OSError) as error:
            raise UpstreamBroken(f"the upstream's answer broke off: {_words(error)}") from error

    async def read(self) -> bytes:
        """Gives the whole body. Raises UpstreamBroken."""
        return b"".join([chunk async for chunk in self.chunks()])

    def close(self) -> None:
        """Ends the exchange; a body that wasn't read to its end takes its connection with it."""
        self._response.close()


class Upstream:
    """One model API with its pool of connections."""

    def __init__(self, url: str, *, connect_seconds: float = 10, silence_seconds: float = 600) -> None:
        self.url = url
        reuse = aiohttp.TraceConfig()
        reuse.on_connection_reuseconn.append(_mark_reused)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=30),
            cookie_jar=aiohttp.DummyCookieJar(),  # one client's cookie is no other's business
            timeout=aiohttp.ClientTimeout(total=None, connect=connect_seconds, sock_read=silence_seconds),
            auto_decompress=False,
            trust_env=False,
            skip_auto_headers=_NO_AUTO_HEADERS,
            read_bufsize=_LARGE,
            max_line_size=_HEAD_BYTES,
            max_field_size=_HEAD_BYTES,
            trace_configs=[reuse],
        )

    async def send(
        self, method: str, path: str, headers: Headers, body: bytes, *, identity: bool = False, own: Headers = ()
    ) -> Reply:
        """Sends one request and gives the answer as soon as its status and headers are there.

        `path` goes out as it stands, query included; `identity` asks for an answer that can be read without unpacking;
        `own` are headers of ours, which go out although a client's of these names don't.
        A request is sent again only when a pooled connection turned out to be closed: at once and without a byte of
        answer. Raises UpstreamUnreachable, UpstreamTimeout, BadRequest.
        """
        kept = CIMultiDict(_kept(headers, _NOT_FORWARDED, _OURS))
        kept.extend(own)
        if identity:
            kept["Accept-Encoding"] = "identity"
        try:
            url = URL(self.url + path, encoded=True)
        except ValueError as error:
            raise BadRequest(f"this isn't a path: {path!r}") from error
        trace = SimpleNamespace(reused=False)
        started = time.monotonic()
        try:
            return await self._send(method, url, kept, body, trace)
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError) as error:
            stale = trace.reused and time.monotonic() - started < _STALE_SECONDS
            if not stale:
                raise UpstreamUnreachable(f"the upstream can't be reached: {_words(error)}") from error
        return await self._send_anew(method, url, kept, body)

    async def close(self) -> None:
        """Closes all connections."""
        await self._session.close()

    async def _send_anew(self, method: str, url: URL, headers: CIMultiDict[str], body: bytes) -> Reply:
        try:
            return await self._send(method, url, headers, body, None)
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError) as error:
            raise UpstreamUnreachable(f"the upstream can't be reached: {_words(error)}") from error

    async def _send(self, method: str, url: URL, headers: CIMultiDict[str], body: bytes, trace: object) -> Reply:
        data: bytes | io.BytesIO | None = body if len(body) < _LARGE else io.BytesIO(body)
        if not body and method in ("GET", "HEAD", "OPTIONS"):
            data = None
        try:
            response = await self._session.request(
                method, url, headers=headers, data=data, allow_redirects=False, trace_request_ctx=trace
            )
        except TimeoutError as error:
            raise UpstreamTimeout("the upstream didn't answer in time") from error
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
            raise
        except aiohttp.ClientError as error:
            raise UpstreamUnreachable(f"the upstream didn't answer in HTTP: {_words(error)}") from error
        return Reply(response)


async def _mark_reused(_session: aiohttp.ClientSession, context: SimpleNamespace, _params: object) -> None:
    if context.trace_request_ctx is not None:
        context.trace_request_ctx.reused = True


def _kept(headers: Iterable[tuple[str, str]], dropped: frozenset[str], prefix: str = "\0") -> list[tuple[str, str]]:
    """Gives the pairs that belong to the message; what `Connection` names belongs to the connection."""
    pairs = [(name, value, name.lower()) for name, value in headers]
    for _, value, name in pairs:
        if name == "connection" and value.lower() not in ("keep-alive", "close"):
            dropped = dropped | {word.strip().lower() for word in value.split(",")}
    return [(name, value) for name, value, low in pairs if low not in dropped and not low.startswith(prefix)]


def _words(error: BaseException) -> str:
    return str(error) or type(error).__name__
