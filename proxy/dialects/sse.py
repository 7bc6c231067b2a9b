"""Server-sent events, read from the bytes of a whole stream.

Lines end at LF, CRLF or CR only: `splitlines` would also cut at U+2028 and U+0085 and break the JSON inside.
"""

from __future__ import annotations

import re

_PLAIN = re.compile(rb"data: ([^\n]*)\n\n")
_FRAME = len(b"data: \n\n")


def events(stream: bytes) -> list[bytes]:
    """Gives the data of each complete event, its data lines joined with LF."""
    plain = _PLAIN.findall(stream) if b"\r" not in stream else []
    if sum(map(len, plain)) + _FRAME * len(plain) == len(stream):  # nothing else stands in it, as in most streams
        return plain
    lines = stream.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    found: list[bytes] = []
    data: list[bytes] = []
    for line in lines:
        if line.startswith(b"data:"):
            data.append(line[6:] if line[5:6] == b" " else line[5:])
        elif not line and data:
            found.append(b"\n".join(data))
            data = []
    return found
