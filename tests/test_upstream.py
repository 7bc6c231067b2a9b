"""The way to the model: what is sent once, what is sent again, and what is never sent."""

from __future__ import annotations

import asyncio
import contextlib
import zlib
from collections.abc import AsyncIterator, Callable

import pytest

from proxy.errors import UpstreamBroken, UpstreamUnreachable
from proxy.exchange import Copy
from proxy.upstream import Patient, Upstream
from tests.fake_model import FakeModel, Reply

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@contextlib.asynccontextmanager
async def connected(url: str) -> AsyncIterator[Upstream]:
    upstream = Upstream(url)
    try:
        yield upstream
    finally:
        await upstream.close()


@contextlib.asynccontextmanager
async def peer(*answers: bytes) -> AsyncIterator[tuple[str, list[bytes]]]:
    """A bare server that gives these answers to successive requests, closing the connection at an empty one."""
    waiting = list(answers)
    requests: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                requests.append(await reader.readuntil(b"{}"))
                answer = waiting.pop(0)
                writer.write(answer)
                if not answer:
                    break
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", requests
    finally:
        server.close()


async def post(upstream: Upstream) -> bytes:
    reply = await upstream.send("POST", "/v1/x", [], b"{}")
    try:
        return await reply.read()
    finally:
        reply.close()


async def test_a_pooled_connection_that_was_closed_costs_one_more_attempt():
    async with peer(OK, b"", OK) as (url, requests), connected(url) as upstream:
        assert await post(upstream) == b"ok"
        assert await post(upstream) == b"ok"
        assert len(requests) == 3


async def test_a_new_connection_that_is_closed_without_answer_is_not_tried_again():
    async with peer(b"", OK) as (url, requests), connected(url) as upstream:
        with pytest.raises(UpstreamUnreachable):
            await post(upstream)
        assert len(requests) == 1


async def test_a_second_closed_connection_is_the_end():
    async with peer(OK, b"", b"", OK) as (url, requests), connected(url) as upstream:
        assert await post(upstream) == b"ok"
        with pytest.raises(UpstreamUnreachable):
            await post(upstream)
        assert len(requests) == 3


async def test_connections_are_used_again():
    async with FakeModel() as model, connected(model.url) as upstream:
        for _ in range(3):
            assert b"ok" in await post(upstream)
        assert len({seen.header("host") for seen in model.seen}) == 1
        assert [len(pooled) for pooled in upstream._connector._conns.values()] == [1]


async def test_no_cookie_of_one_answer_is_sent_with_the_next_request():
    async with FakeModel() as model, connected(model.url) as upstream:
        model.say(Reply(headers=[("Set-Cookie", "session=1")]))
        await post(upstream)
        await post(upstream)
        assert model.seen[1].header("cookie") is None


@pytest.mark.parametrize("window", [15, -15, 31])
def test_the_copy_is_read_through_gzip_zlib_and_bare_deflate(window):
    packer = zlib.compressobj(wbits=window)
    copy = Copy()
    copy.add(packer.compress(b"words " * 100))
    copy.add(packer.flush())
    assert copy.text("gzip" if window == 31 else "deflate") == b"words " * 100


def test_a_copy_beyond_its_bound_or_in_an_unknown_coding_is_given_up():
    copy = Copy(limit=10)
    copy.add(b"12345")
    assert copy.text() == b"12345"
    assert copy.text("br") == b""
    copy.add(b"678901")
    assert (copy.dropped, copy.text()) == (True, b"")


async def test_what_arrived_before_an_answer_broke_off_is_given_first():
    answered = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"{}")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nthe first words")
        await answered.wait()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server, connected(url) as upstream, asyncio.timeout(5):
        reply = await upstream.send("POST", "/v1/x", [], b"{}")
        lost = reply._connection.protocol.closed
        answered.set()
        await lost  # nobody reads before it broke off
        chunks = reply.chunks()
        assert await anext(chunks) == b"the first words"
        with pytest.raises(UpstreamBroken):
            await anext(chunks)
        reply.close()


class Clock:
    """A loop's clock that goes on when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0
        self.timers: list[tuple[float, Callable[[], None]]] = []

    def time(self) -> float:
        return self.now

    def call_later(self, seconds: float, then: Callable[[], None]) -> object:
        self.timers.append((self.now + seconds, then))
        return object()

    def ring(self) -> None:
        self.now, then = self.timers.pop()
        then()


def test_silence_is_measured_from_the_newest_bytes_by_one_timer():
    clock = Clock()
    connection = Patient(clock)  # type: ignore[arg-type]
    connection.read_timeout = 10
    connection.start_timeout()
    clock.now = 9.0
    connection.start_timeout()  # as with each packet
    assert len(clock.timers) == 1
    clock.ring()
    assert (clock.now, connection.exception()) == (10.0, None)
    clock.ring()
    assert clock.now == 19.0
    assert isinstance(connection.exception(), TimeoutError)
    assert clock.timers == []


async def test_an_answer_that_comes_in_thousands_of_pieces_is_given_whole_and_in_order():
    pieces = [b"%d," % number for number in range(3000)]
    chunked = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    async with peer(head + chunked + b"0\r\n\r\n") as (url, _), connected(url) as upstream, asyncio.timeout(5):
        assert await post(upstream) == b"".join(pieces)


@pytest.mark.parametrize(("method", "status"), [("POST", 204), ("GET", 304), ("HEAD", 200)])
async def test_an_answer_without_a_body_ends_at_once(method: str, status: int):
    async with peer(b"HTTP/1.1 %d X\r\nContent-Length: 5\r\n\r\n" % status) as (url, _), connected(url) as upstream:
        reply = await upstream.send(method, "/v1/x", [], b"{}")
        assert (reply.status, await reply.read()) == (status, b"")
        reply.close()
