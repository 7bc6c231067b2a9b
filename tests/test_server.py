"""The server on a real loopback socket, between a real client and a fake model."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import io
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest
from yarl import URL

from proxy.errors import GoalkeeperError
from proxy.exchange import Call, Copy, PassThrough, Sink, early_reply, relay
from proxy.server import Gate
from proxy.settings.model import Server
from proxy.telemetry import Counters, Log
from proxy.upstream import Upstream
from proxy.web.doors import Doors, Readiness
from tests.fake_model import JSON, SSE, FakeModel, Reply, chat_reply, chat_stream, event, listening

CHAT = "/v1/chat/completions"
QUESTION = {"model": "demo", "messages": [{"role": "user", "content": "hi"}]}
STREAMED = {**QUESTION, "stream": True}


def in_stream(error: GoalkeeperError) -> bytes:
    return event({"error": {"message": str(error), "code": error.code}})


@dataclass
class Relaying:
    """The smallest exchange with everything that the transport offers."""

    upstream: Upstream
    keepalive: float = 0
    early: bool = False
    copy: Copy | None = None
    broken: GoalkeeperError | None = None

    async def handle(self, call: Call, sink: Sink) -> None:
        sending = self.upstream.send(call.method, call.path, call.headers, call.body, identity=True)
        try:
            if self.early:
                reply = await early_reply(sending, sink, keepalive=self.keepalive, stream_error=in_stream)
            else:
                reply = await sending
            self.copy = Copy()
            await relay(
                reply,
                sink,
                headers=[("x-goalkeeper-session", "s1")],
                keepalive=self.keepalive,
                copy=self.copy,
                stream_error=in_stream,
            )
        except GoalkeeperError as error:
            self.broken = error
            raise


@dataclass
class Running:
    """A fake model, a proxy before it, and a client."""

    model: FakeModel
    url: str
    client: aiohttp.ClientSession
    relaying: Relaying
    counters: Counters
    log: Log

    def ask(self, body: object = QUESTION, path: str = CHAT, **more: object) -> aiohttp.client._RequestContextManager:
        data = io.BytesIO(body) if isinstance(body, bytes) else json.dumps(body).encode()
        return self.client.post(self.url + path, data=data, **more)  # type: ignore[arg-type]


@contextlib.asynccontextmanager
async def running(
    server: Server | None = None, *, keepalive: float = 0, early: bool = False, silence: float = 60
) -> AsyncIterator[Running]:
    server = server or Server()
    async with contextlib.AsyncExitStack() as stack:
        model = await stack.enter_async_context(FakeModel())
        client = await stack.enter_async_context(aiohttp.ClientSession(auto_decompress=False))
        upstream = Upstream(model.url, silence_seconds=silence)
        stack.push_async_callback(upstream.close)
        counters = Counters()
        relaying = Relaying(upstream, keepalive, early)
        doors = Doors(server, Readiness({"rules": False}), counters, {"facts": lambda query: {"facts": [], **query}})
        log = Log(io.StringIO())
        stack.callback(log.close)
        gate = Gate(server, {"/v1/chat/completions": relaying}, PassThrough(upstream), doors, log)
        url = await stack.enter_async_context(listening(gate.server()))
        yield Running(model, url, client, relaying, counters, log)


# --- answers come as they are ----------------------------------------------------------------------------------------


async def test_a_stream_split_inside_characters_arrives_byte_for_byte():
    whole = event({"choices": [{"delta": {"content": "무엇을 도와드릴까요? 🙂\u2028\x85"}}]}) + b"data: [DONE]\n\n"
    chunks = [whole[i : i + 7] for i in range(0, len(whole), 7)]
    async with running() as proxy:
        proxy.model.say(Reply(headers=SSE, chunks=chunks))
        async with proxy.ask(STREAMED) as answer:
            assert await answer.read() == whole
            assert answer.headers["x-goalkeeper-session"] == "s1"
        assert proxy.relaying.copy is not None
        assert proxy.relaying.copy.text() == whole


async def test_the_first_event_arrives_while_the_model_still_thinks_about_the_second():
    go_on = asyncio.Event()
    first, second = event({"n": 1}), event({"n": 2})
    async with running() as proxy:
        proxy.model.say(Reply(headers=SSE, chunks=[first, second], between=go_on))
        async with proxy.ask(STREAMED) as answer:
            assert await answer.content.readexactly(len(first)) == first
            go_on.set()
            assert await answer.read() == second


@pytest.mark.parametrize("status", [200, 429])
async def test_a_compressed_answer_stays_compressed_for_the_client_and_readable_for_us(status):
    plain = json.dumps({"choices": [{"message": {"content": "hello"}}]}).encode()
    packed = gzip.compress(plain)
    async with running() as proxy:
        proxy.model.say(Reply(status, (*JSON, ("Content-Encoding", "gzip"), ("Retry-After", "7")), packed))
        async with proxy.ask() as answer:
            assert answer.status == status
            assert answer.headers["Retry-After"] == "7"
            assert int(answer.headers["Content-Length"]) == len(packed)
            assert gzip.decompress(await answer.read()) == plain
        assert proxy.relaying.copy is not None
        assert proxy.relaying.copy.text("gzip") == plain


async def test_repeated_and_unknown_headers_arrive_and_hop_by_hop_ones_do_not():
    headers = (
        *JSON,
        ("Set-Cookie", "a=1"),
        ("Set-Cookie", "b=2"),
        ("X-Request-Id", "r-1"),
        ("Keep-Alive", "timeout=5"),
    )
    async with running() as proxy:
        proxy.model.say(Reply(headers=headers, body=b"{}"), chat_reply())
        async with proxy.ask() as answer:
            assert answer.headers.getall("Set-Cookie") == ["a=1", "b=2"]
            assert answer.headers["X-Request-Id"] == "r-1"
            assert "Keep-Alive" not in answer.headers
        async with proxy.ask(headers={"Cookie": "mine=1"}):
            assert proxy.model.seen[1].header("cookie") == "mine=1"


async def test_request_headers_go_on_except_ours_and_those_of_the_connection():
    async with running() as proxy:
        sent = {
            "Authorization": "Bearer k",
            "X-Custom": "1",
            "X-Goalkeeper-Budget": "9",
            "Connection": "x-hop",
            "X-Hop": "1",
        }
        async with proxy.ask(headers=sent, skip_auto_headers=["User-Agent", "Accept"]):
            seen = proxy.model.seen[0]
        names = {name.lower() for name, _ in seen.headers}
        assert names == {"host", "authorization", "x-custom", "content-type", "content-length", "accept-encoding"}
        assert seen.header("accept-encoding") == "identity"
        assert seen.header("authorization") == "Bearer k"


async def test_a_redirect_is_passed_on_and_not_followed():
    async with running() as proxy:
        proxy.model.say(Reply(307, [("Location", "http://other.test/v1")]))
        async with proxy.ask(allow_redirects=False) as answer:
            assert answer.status == 307
            assert answer.headers["Location"] == "http://other.test/v1"
        assert len(proxy.model.seen) == 1


# --- requests come as they are ---------------------------------------------------------------------------------------


async def test_a_body_of_fifty_megabytes_passes_and_a_larger_one_than_allowed_names_the_setting():
    large = b"x" * (50 << 20)
    async with running() as proxy:
        async with proxy.ask(large) as answer:
            assert answer.status == 200
        assert proxy.model.seen[0].body == large
        async with proxy.ask(b"x" * ((64 << 20) + 1)) as answer:
            assert answer.status == 413
            assert "server.max_body_bytes" in (await answer.json())["error"]["message"]


async def test_a_body_of_unknown_length_is_counted_while_it_comes():
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(3):
            yield b"x" * 60

    async with running(Server(max_body_bytes=100)) as proxy:
        async with proxy.client.post(proxy.url + CHAT, data=endless()) as answer:
            assert answer.status == 413
        assert proxy.model.seen == []


@pytest.mark.parametrize(
    "body",
    [b'{"model": "demo", "mess', b"\xff\xfe", b"", gzip.compress(b"{}", mtime=0)],
    ids=["cut", "bytes", "empty", "gzip"],
)
async def test_what_is_not_json_passes_untouched(body):
    async with running() as proxy:
        async with proxy.ask(body, headers={"Content-Encoding": "x"}) as answer:
            assert answer.status == 200
        assert proxy.model.seen[0].body == body


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/models?after=%2Fx&limit=2"),
        ("POST", "/v1/messages/count_tokens?beta=true"),
        ("DELETE", "/v1/files/f%201"),
        ("POST", "/v1/some/future/route"),
        ("POST", "/v1beta/models/g:streamGenerateContent?alt=sse"),
        ("GET", "/v1/chat/completions?limit=1"),
    ],
)
async def test_other_routes_pass_with_method_query_and_headers(method, path):
    async with running() as proxy:
        proxy.model.say(Reply(418, [("X-Odd", "yes")], b"teapot"))
        body = b"{}" if method == "POST" else None
        async with proxy.client.request(
            method, URL(proxy.url + path, encoded=True), data=body, headers={"X-Beta": "b"}
        ) as answer:
            assert (answer.status, answer.headers["X-Odd"], await answer.read()) == (418, "yes", b"teapot")
        seen = proxy.model.seen[0]
        assert (seen.method, seen.path, seen.header("x-beta"), seen.body) == (method, path, "b", body or b"")
        assert proxy.counters.value("passed_total") == 1


@pytest.mark.parametrize(
    ("prefix", "session", "project"),
    [("/s/a%2Fb", "a/b", ""), ("/p/shop", "", "shop"), ("/s/x/p/y", "x", "y"), ("/p/y/s/x", "x", "y")],
)
async def test_names_in_the_path_become_headers_of_ours(prefix, session, project):
    calls: list[Call] = []

    async with running() as proxy:
        original = proxy.relaying.handle

        class Keeping:
            async def handle(self, call: Call, sink: Sink) -> None:
                calls.append(call)
                await original(call, sink)

        gate = Gate(
            Server(),
            {"/v1/chat/completions": Keeping()},
            Keeping(),
            Doors(Server(), Readiness(), Counters()),
            proxy.log,
        )
        async with listening(gate.server()) as url, proxy.client.post(f"{url}{prefix}{CHAT}?a=b", data=b"{}") as answer:
            assert answer.status == 200
        assert calls[0].path == f"{CHAT}?a=b"
        assert calls[0].header("x-goalkeeper-session") == session
        assert calls[0].header("x-goalkeeper-project") == project
        assert proxy.model.seen[0].path == f"{CHAT}?a=b"
        assert proxy.model.seen[0].header("x-goalkeeper-session") is None


async def test_a_websocket_is_refused_at_once_with_words():
    async with running() as proxy:
        headers = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13"}
        async with proxy.client.get(proxy.url + "/v1/responses", headers=headers) as answer:
            assert answer.status == 426
            assert (await answer.json())["error"]["code"] == "websocket_not_supported"
        assert proxy.model.seen == []


async def test_expect_continue_is_answered_before_the_body_is_sent():
    async with running() as proxy:
        async with proxy.ask(expect100=True) as answer:
            assert answer.status == 200
        assert proxy.model.seen[0].json() == QUESTION


# --- silence ---------------------------------------------------------------------------------------------------------


async def test_comment_lines_keep_a_silent_stream_open_and_none_follow_the_end():
    go_on = asyncio.Event()
    first = event({"n": 1})
    async with running(keepalive=0.02) as proxy:
        proxy.model.say(Reply(headers=SSE, chunks=[first, event({"n": 2}) + b"data: [DONE]\n\n"], between=go_on))
        async with proxy.ask(STREAMED) as answer:
            head = await answer.content.readexactly(len(first) + 3 * len(b": keep-alive\n\n"))
            go_on.set()
            rest = await answer.read()
    assert head == first + b": keep-alive\n\n" * 3
    assert rest.endswith(event({"n": 2}) + b"data: [DONE]\n\n")


async def test_no_comment_line_falls_into_an_event():
    go_on = asyncio.Event()
    whole = event({"text": "half and half"})
    async with running(keepalive=0.01) as proxy:
        proxy.model.say(Reply(headers=SSE, chunks=[whole[:9], whole[9:]], between=go_on))
        async with proxy.ask(STREAMED) as answer:
            head = await answer.content.readexactly(9)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(answer.content.readany(), 0.05)
            go_on.set()
            assert (head + await answer.read()).replace(b": keep-alive\n\n", b"") == whole


async def test_no_200_is_promised_before_the_upstream_has_answered():
    go_on = asyncio.Event()
    async with running(keepalive=0.01) as proxy:
        proxy.model.say(Reply(429, body=b"{}", before=go_on))
        asking = asyncio.ensure_future(proxy.ask(STREAMED)._coro)
        await proxy.model.request(0)
        assert not asking.done()
        go_on.set()
        assert (await asking).status == 429


async def test_an_early_stream_opens_with_comment_lines_and_goes_on_with_the_answer():
    go_on = asyncio.Event()
    async with running(keepalive=0.01, early=True) as proxy:
        proxy.model.say(Reply(headers=SSE, chunks=[b"data: [DONE]\n\n"], before=go_on))
        async with proxy.ask(STREAMED) as answer:
            assert answer.status == 200
            assert answer.content_type == "text/event-stream"
            await answer.content.readexactly(3 * len(b": keep-alive\n\n"))
            go_on.set()
            assert (await answer.read()).endswith(b"data: [DONE]\n\n")


async def test_a_refusal_after_an_early_opening_is_told_inside_the_stream():
    go_on = asyncio.Event()
    async with running(keepalive=0.01, early=True) as proxy:
        proxy.model.say(Reply(503, body=b'{"error": "busy"}', before=go_on))
        async with proxy.ask(STREAMED) as answer:
            await answer.content.readexactly(len(b": keep-alive\n\n"))
            go_on.set()
            rest = await answer.read()
        assert b'"code": "upstream_refused"' in rest
        assert b"[DONE]" not in rest
        assert proxy.relaying.broken is not None
        assert proxy.relaying.broken.status == 503


async def test_an_early_stream_that_needs_no_help_passes_as_any_other():
    async with running(keepalive=5, early=True) as proxy:
        proxy.model.say(Reply(429, body=b"slow down"))
        async with proxy.ask(STREAMED) as answer:
            assert (answer.status, await answer.read()) == (429, b"slow down")


async def test_an_upstream_that_never_answers_gives_504():
    async with running(silence=0.05) as proxy:
        proxy.model.say(Reply(before=asyncio.Event()))
        async with proxy.ask() as answer:
            assert answer.status == 504
            assert (await answer.json())["error"]["code"] == "upstream_timeout"


# --- breaks ----------------------------------------------------------------------------------------------------------


async def test_an_answer_that_breaks_off_is_told_at_an_event_border_and_not_asked_for_again():
    events = [event({"text": text}) for text in ("one ", "two ", "three ")]
    async with running() as proxy:
        proxy.model.say(Reply(headers=SSE, chunks=events, then="abort"))
        async with proxy.ask(STREAMED) as answer:
            got = await read_until_broken(answer)
        assert got.startswith(b"".join(events))
        assert b'"code": "upstream_broken"' in got[len(b"".join(events)) :]
        assert b"[DONE]" not in got
        assert len(proxy.model.seen) == 1


async def test_an_answer_that_breaks_off_inside_an_event_gets_no_words_of_ours():
    async with running() as proxy:
        proxy.model.say(Reply(headers=SSE, chunks=[event({"n": 1}), b'data: {"te'], then="abort"))
        async with proxy.ask(STREAMED) as answer:
            assert await read_until_broken(answer) == event({"n": 1}) + b'data: {"te'


async def test_a_body_shorter_than_announced_breaks_for_the_client_too():
    async with running() as proxy:
        proxy.model.say(Reply(raw=b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort"))
        async with proxy.ask() as answer:
            assert await read_until_broken(answer) == b"short"


async def read_until_broken(answer: aiohttp.ClientResponse) -> bytes:
    got = b""
    with pytest.raises(aiohttp.ClientPayloadError):
        async for chunk in answer.content.iter_any():
            got += chunk
    return got


async def test_an_upstream_that_is_down_gives_502_with_a_code():
    async with running() as proxy:
        await proxy.model.__aexit__()
        async with proxy.ask() as answer:
            assert answer.status == 502
            assert (await answer.json())["error"]["code"] == "upstream_unreachable"


async def test_our_own_errors_have_the_form_of_the_api_that_was_asked():
    async with running() as proxy:
        await proxy.model.__aexit__()
        async with proxy.ask(path="/v1/messages/count_tokens?beta=true") as answer:
            assert answer.status == 502
            told = await answer.json()
            assert (told["type"], told["error"]["type"]) == ("error", "api_error")


@pytest.mark.parametrize(
    "rubbish", [b"SSH-2.0-OpenSSH_9.2\r\n\r\n", b"HTTP/1.1 abc\r\n\r\n", b"\x00\x01\x02\r\n\r\n", b""]
)
async def test_an_upstream_that_talks_rubbish_gives_502(rubbish):
    async with running() as proxy:
        proxy.model.say(Reply(raw=rubbish))
        async with proxy.ask() as answer:
            assert answer.status == 502
            assert (await answer.json())["error"]["code"] == "upstream_unreachable"


# --- the client leaves -----------------------------------------------------------------------------------------------


async def test_a_client_that_leaves_before_the_first_byte_stops_the_upstream():
    async with running() as proxy:
        proxy.model.say(Reply(before=asyncio.Event()))
        await leave(proxy, STREAMED, b"")


async def test_a_client_that_leaves_in_mid_stream_stops_the_upstream():
    first = event({"n": 1})
    async with running() as proxy:
        proxy.model.say(Reply(headers=SSE, chunks=[first], then="hang"))
        await leave(proxy, STREAMED, first)
        assert proxy.relaying.copy is not None
        assert proxy.relaying.copy.text() == first


async def test_a_client_that_leaves_a_call_without_stream_stops_the_upstream():
    async with running() as proxy:
        proxy.model.say(Reply(before=asyncio.Event()))
        await leave(proxy, QUESTION, b"")


async def test_a_client_that_leaves_an_early_stream_stops_the_upstream():
    async with running(keepalive=0.01, early=True) as proxy:
        proxy.model.say(Reply(before=asyncio.Event()))
        await leave(proxy, STREAMED, b": keep-alive\n\n")


async def leave(proxy: Running, body: object, after: bytes) -> None:
    """Asks over a bare socket, leaves once `after` has arrived, and waits for the upstream to notice."""
    host, port = proxy.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    data = json.dumps(body).encode()
    writer.write(f"POST {CHAT} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data)
    seen = await proxy.model.request(0)
    if after:
        await reader.readuntil(after)
    writer.close()
    await writer.wait_closed()
    await asyncio.wait_for(seen.closed.wait(), 1)
    assert len(proxy.model.seen) == 1


# --- our own doors ---------------------------------------------------------------------------------------------------


async def test_health_readiness_metrics_and_facts_are_there_to_be_read():
    async with running() as proxy:
        async with proxy.client.get(proxy.url + "/healthz") as answer:
            assert (answer.status, await answer.text()) == (200, "ok\n")
        async with proxy.client.get(proxy.url + "/readyz") as answer:
            assert answer.status == 503
            assert (await answer.json())["parts"] == {"rules": False}
        async with proxy.client.get(proxy.url + "/metrics") as answer:
            assert "goalkeeper_compactions_total 0\n" in await answer.text()
        async with proxy.client.get(proxy.url + "/admin/facts?session=s1") as answer:
            assert await answer.json() == {"facts": [], "session": "s1"}
        async with proxy.client.get(proxy.url + "/admin/nothing") as answer:
            assert answer.status == 404
        async with proxy.client.post(proxy.url + "/admin/facts") as answer:
            assert answer.status == 400


@pytest.mark.parametrize(
    ("host", "status"), [("evil.test", 403), ("localhost:1", 200), ("[::1]:80", 200), ("127.0.0.1", 200)]
)
async def test_our_doors_answer_to_the_names_of_this_machine_only(host, status):
    async with running() as proxy:
        async with proxy.client.get(proxy.url + "/admin/facts", headers={"Host": host}) as answer:
            assert answer.status == status
            assert not [name for name in answer.headers if name.lower().startswith("access-control")]
        async with proxy.ask(headers={"Host": host}) as answer:
            assert answer.status == 200


async def test_with_a_token_our_doors_need_it_and_the_api_does_not():
    async with running(Server(host="0.0.0.0", token="open sesame")) as proxy:
        async with proxy.client.get(proxy.url + "/healthz") as answer:
            assert answer.status == 401
        headers = {"Authorization": "Bearer open sesame", "Host": "box.lan"}
        async with proxy.client.get(proxy.url + "/healthz", headers=headers) as answer:
            assert answer.status == 200
        async with proxy.ask(headers={"Authorization": "Bearer key"}) as answer:
            assert answer.status == 200
        assert proxy.model.seen[0].header("authorization") == "Bearer key"


# --- the process -----------------------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def started(*flags: str, **environ: str) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "proxy", "serve", *flags),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=Path(__file__).parent.parent,
        env={**os.environ, **environ},
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def url_of(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    line = (await asyncio.wait_for(process.stdout.readline(), 30)).decode()
    assert line.startswith("listening on http://127.0.0.1:")
    return line.split()[-1]


async def ended(process: asyncio.subprocess.Process) -> tuple[int | None, bytes]:
    assert process.stderr is not None
    errors = await asyncio.wait_for(process.stderr.read(), 30)
    return await process.wait(), errors


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_serve_says_where_it_listens_and_ends_with_0_when_told(number, tmp_path):
    async with FakeModel() as model, aiohttp.ClientSession() as client:
        flags = ("--port", "0", "--data", str(tmp_path), "--upstream", model.url + "/v1")
        async with started(*flags) as process:
            async with client.get(await url_of(process) + "/v1/models") as answer:
                assert answer.status == 200
            process.send_signal(number)
            code, errors = await ended(process)
    assert (code, b"Traceback" in errors) == (0, False)


async def test_a_stream_that_never_ends_does_not_keep_the_process_alive(tmp_path):
    async with FakeModel() as model, aiohttp.ClientSession() as client:
        model.say(Reply(headers=SSE, chunks=[event({"n": 1})], then="hang"))
        async with started("--port", "0", "--data", str(tmp_path), "--upstream", model.url) as process:
            async with client.post(await url_of(process) + CHAT, json=STREAMED) as answer:
                assert await answer.content.readany() == event({"n": 1})
                process.send_signal(signal.SIGTERM)
                code, errors = await ended(process)
        assert (code, b"Traceback" in errors) == (0, False)
        assert model.seen[0].closed.is_set()


async def test_serve_refuses_an_open_port_without_token_and_a_taken_one(tmp_path):
    async with started("--port", "0", "--data", str(tmp_path), "--host", "0.0.0.0", GOALKEEPER_TOKEN="") as process:
        code, errors = await ended(process)
    assert (code, b"server.token" in errors) == (2, True)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        async with started("--port", port, "--data", str(tmp_path)) as process:
            code, errors = await ended(process)
    assert (code, b"server.port" in errors, b"Traceback" in errors) == (2, True, False)


async def test_the_stream_of_an_ordinary_answer_is_whole():
    async with running() as proxy:
        proxy.model.say(chat_stream("one ", "two"))
        async with proxy.ask(STREAMED) as answer:
            assert (await answer.read()).count(b"data: ") == 4
