"""Server-sent events, read from the bytes of a whole stream.

Lines end at LF, CRLF or CR only: `splitlines` would also cut at U+2028 and U+0085 and break the JSON inside.
"""

from __future__ import annotations

from collections.abc import Iterator


def events(stream: bytes) -> Iterator[bytes]:
    """Yields the data of each complete event, its data lines joined with LF."""
    data: list[bytes] = []
    for line in stream.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n"):
        if not line:
            if data:
                yield b"\n".join(data)
            data = []
        elif line.startswith(b"data:"):
            data.append(line[6:] if line[5:6] == b" " else line[5:])
