"""A bare HTTP client on one kept connection; it costs less than what it measures."""

from __future__ import annotations

import socket
import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer; its seconds run from the first byte sent to the last one received, header names are in lower case."""

    seconds: float
    status: int
    headers: dict[str, str]
    body: bytes  # with its chunk framing when it was streamed


class Connection:
    """One connection to a server on loopback."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=300)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._head = f"Host: 127.0.0.1:{port}\r\nContent-Type: application/json\r\nAuthorization: Bearer sk-bench\r\n"

    def post(self, body: bytes, headers: str = "", path: str = "/v1/chat/completions") -> Answer:
        """Sends one request (`headers`: whole lines, each with its line end) and reads the whole answer."""
        lines = f"POST {path} HTTP/1.1\r\n{self._head}{headers}Content-Length: {len(body)}\r\n\r\n"
        begun = time.perf_counter()
        self._socket.sendall(lines.encode() + body)
        data = bytearray()
        while (border := data.find(b"\r\n\r\n")) < 0:
            self._more(data)
        status, found = _head(bytes(data[:border]))
        del data[: border + 4]
        while not _complete(data, found):
            self._more(data)
        return Answer(time.perf_counter() - begun, status, found, bytes(data))

    def close(self) -> None:
        """Closes the connection."""
        self._socket.close()

    def _more(self, data: bytearray) -> None:
        received = self._socket.recv(1 << 18)
        if not received:
            raise ConnectionError("the server closed the connection")
        data += received


def _head(head: bytes) -> tuple[int, dict[str, str]]:
    first, *lines = head.decode("latin-1").split("\r\n")
    pairs = (line.partition(":") for line in lines)
    return int(first.split()[1]), {name.lower(): value.strip() for name, _, value in pairs}


def _complete(data: bytearray, headers: dict[str, str]) -> bool:
    if "content-length" in headers:
        return len(data) >= int(headers["content-length"])
    return data.endswith(b"0\r\n\r\n")
