"""A model stand-in for load: one answer for every request, or a stream of 2000 events; costs next to nothing.

Run: python -m benchmarks.upstream [--port N] [--usage]
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Callable
from typing import Any

from benchmarks.processes import announce, run_loop

EVENTS = 2_000
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\n%s\r\n\r\n"
Reply = Callable[[bytes], bytes]


def completion(message: dict[str, Any], prompt_tokens: int = 0) -> bytes:
    """Gives a whole answer in the chat dialect; usage only where a prompt size is known."""
    finish = "tool_calls" if message.get("tool_calls") else "stop"
    answer: dict[str, Any] = {
        "id": "chatcmpl-bench",
        "object": "chat.completion",
        "created": 1,
        "model": "bench",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
    }
    if prompt_tokens:
        answer["usage"] = {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": 20,
            "total_tokens": prompt_tokens + 20,
        }
    return json.dumps(answer, separators=(",", ":")).encode()


def _events() -> list[bytes]:
    def event(delta: dict[str, str], finish: str | None) -> bytes:
        chunk = {"id": "chatcmpl-bench", "object": "chat.completion.chunk", "created": 1, "model": "bench"}
        data = json.dumps({**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
        return f"data: {data}\n\n".encode()

    pieces = [event({"role": "assistant", "content": ""}, None)]
    pieces += [event({"content": f" word{number}"}, None) for number in range(EVENTS - 3)]
    pieces += [event({}, "stop"), b"data: [DONE]\n\n"]
    return [b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces] + [b"0\r\n\r\n"]


FRAMED = _events()
FIXED = completion({"role": "assistant", "content": "The importer reads semicolon files now; its tests pass."})


def fixed(_body: bytes) -> bytes:
    """Answers the same to everything."""
    return FIXED


def with_usage(body: bytes) -> bytes:
    """Answers the same to everything, and tells how long the prompt was."""
    return completion({"role": "assistant", "content": "Done; the tests pass."}, len(body) // 4)


class Model(asyncio.Protocol):
    """One connection: takes requests with a length one after the other (no pipelining, no chunked requests)."""

    def __init__(self, reply: Reply = fixed) -> None:
        self._reply = reply
        self._data = bytearray()
        self._end = 0  # of the request that is arriving, 0 before its head is complete

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keeps the transport."""
        self._transport: Any = transport

    def data_received(self, data: bytes) -> None:
        """Collects a request and answers it when it is complete."""
        self._data += data
        if not self._end:
            head = self._data.find(b"\r\n\r\n")
            if head < 0:
                return
            self._end = head + 4 + _length(bytes(self._data[:head]))
        if len(self._data) >= self._end:
            body = bytes(self._data[self._data.find(b"\r\n\r\n") + 4 : self._end])
            self._data.clear()
            self._end = 0
            self._answer(body)

    def _answer(self, body: bytes) -> None:
        if b'"stream":true' in body[:2_000]:
            self._transport.write(_HEAD % (b"text/event-stream", b"Transfer-Encoding: chunked"))
            self._write_event(0)
        else:
            answer = self._reply(body)
            self._transport.write(_HEAD % (b"application/json", b"Content-Length: %d" % len(answer)) + answer)

    def _write_event(self, number: int) -> None:
        """Writes one event in one turn of the loop, as a model does that is fast beyond measure."""
        self._transport.write(FRAMED[number])
        if number + 1 < len(FRAMED) and not self._transport.is_closing():
            asyncio.get_running_loop().call_soon(self._write_event, number + 1)


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        if line[:15].lower() == b"content-length:":
            return int(line[15:])
    return 0


async def serve(port: int, reply: Reply) -> asyncio.Server:
    """Listens on loopback; port 0 takes a free one."""
    return await asyncio.get_running_loop().create_server(lambda: Model(reply), "127.0.0.1", port)


async def _main(port: int, reply: Reply) -> None:
    server = await serve(port, reply)
    announce(server.sockets[0].getsockname()[1])
    await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--usage", action="store_true", help="tell a prompt size of a quarter of the body's bytes")
    given = parser.parse_args()
    run_loop(_main(given.port, with_usage if given.usage else fixed))
