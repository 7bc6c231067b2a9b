"""Content encodings for the fake model; br and zstd are written as stored blocks, which needs no library.

Sources: RFC 7932 sections 9.1-9.3 (brotli: an uncompressed meta-block), RFC 8878 section 3.1 (zstd: a raw block).
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Mapping

from tests.cases.faults import Malformed, Unmet

BROTLI_BLOCK = 1 << 16
ZSTD_BLOCK = 1 << 17
ZSTD_HEAD = b"\x28\xb5\x2f\xfd\xa0"  # magic, then: single segment, content size in four bytes


def encode(data: bytes, encoding: str) -> bytes:
    """Gives data in the named content encoding. Raises Malformed for a name it doesn't know."""
    if encoding not in _ENCODERS:
        raise Malformed(f"unknown encoding {encoding!r}")
    return _ENCODERS[encoding](data)


def decode(data: bytes, encoding: str) -> bytes:
    """Gives the plain data back. Raises Unmet when the bytes aren't in that encoding."""
    if encoding not in _DECODERS:
        raise Unmet(f"the client can't read content-encoding {encoding!r}")
    try:
        return _DECODERS[encoding](data)
    except (OSError, EOFError, zlib.error, ValueError, IndexError) as error:
        raise Unmet(f"the body isn't valid {encoding}: {error}") from error


def _brotli(data: bytes) -> bytes:
    out = bytearray()
    bits = 1  # one zero bit at the start of the stream: window of 16 bits
    for start in range(0, len(data), BROTLI_BLOCK):
        block = data[start : start + BROTLI_BLOCK]
        # not last (1 bit), four nibbles of length (2 bits), length - 1 (16 bits), uncompressed (1 bit)
        out += (((len(block) - 1) << 3 | 1 << 19) << bits).to_bytes(3, "little") + block
        bits = 0
    out.append(3 << bits)  # last and empty
    return bytes(out)


def _unbrotli(data: bytes) -> bytes:
    out = bytearray()
    place, bits = 0, 1
    if data[0] & 1:
        raise ValueError("not the window size that was sent")
    while not data[place] >> bits & 1:
        head = int.from_bytes(data[place : place + 3], "little") >> bits
        if head & 6 or not head >> 19 & 1:
            raise ValueError("not a stored block")
        size = (head >> 3 & 0xFFFF) + 1
        out += data[place + 3 : place + 3 + size]
        place, bits = place + 3 + size, 0
    return bytes(out)


def _zstd(data: bytes) -> bytes:
    out = bytearray(ZSTD_HEAD + len(data).to_bytes(4, "little"))
    starts = range(0, max(len(data), 1), ZSTD_BLOCK)
    for start in starts:
        block = data[start : start + ZSTD_BLOCK]
        out += (len(block) << 3 | (start == starts[-1])).to_bytes(3, "little") + block
    return bytes(out)


def _unzstd(data: bytes) -> bytes:
    if not data.startswith(ZSTD_HEAD):
        raise ValueError("not the frame that was sent")
    out = bytearray()
    place, last = len(ZSTD_HEAD) + 4, False
    while not last:
        head = int.from_bytes(data[place : place + 3], "little")
        size, last = head >> 3, bool(head & 1)
        if len(data) < place + 3 + size:
            raise ValueError("cut off")
        out += data[place + 3 : place + 3 + size]
        place += 3 + size
    return bytes(out)


def _same(data: bytes) -> bytes:
    return data


_ENCODERS: Mapping[str, Callable[[bytes], bytes]] = {
    "": _same,
    "identity": _same,
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": _brotli,
    "zstd": _zstd,
}
_DECODERS: Mapping[str, Callable[[bytes], bytes]] = {
    "": _same,
    "identity": _same,
    "gzip": gzip.decompress,
    "deflate": zlib.decompress,
    "br": _unbrotli,
    "zstd": _unzstd,
}
