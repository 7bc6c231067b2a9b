"""Cache marks of the Messages dialect: the provider caches up to a mark, and takes four marks at most.

What ends at the newest block stays the same until the next cut, so its end carries a mark in every request of a branch
that was compacted. Marks are put on last: what is stored, replayed and checked is the body without ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from proxy.compaction.insertion import Insertion
from proxy.compaction.rewrite import Piece
from proxy.transcript import Transcript

MOST = 4
_KEY = "cache_control"
_BYTES = b'"cache_control"'
_LONG = "1h"
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_blocks = msgspec.json.Decoder(list[msgspec.Raw])


def marked(
    raws: Sequence[bytes], pieces: Sequence[Piece], insertions: Sequence[Insertion], transcript: Transcript
) -> list[bytes]:
    """Gives the messages (`raws`, one for each piece) with a mark at the end of the newest block.

    When the client uses all marks itself, its oldest one in the messages gives way; when it has none there, nothing is
    marked.
    """
    block = next((one for one in reversed(insertions) if one.reason == "compaction"), None)
    place = next((index for index, piece in enumerate(pieces) if block and block.id in piece.insertions), None)
    out = list(raws)
    if block is None or place is None:
        return out
    used = [index for index, raw in enumerate(out) for _ in _marks(raw)]
    if _outside(transcript) + len(used) >= MOST:
        if not used:
            return out
        out[used[0]] = _without_first(out[used[0]])
    out[place] = _with_mark(out[place], block.text, long=_long_behind(out[place:]))
    return out


def _outside(transcript: Transcript) -> int:
    """Counts the marks outside the messages; a mark of the body itself is the automatic one, and counts too."""
    automatic = transcript.options.get(_KEY, b"null") != b"null"
    places = (transcript.tools_raw, transcript.options.get("system", b""))
    return automatic + sum(len(list(_found(msgspec.json.decode(raw)))) for raw in places if _BYTES in raw)


def _marks(raw: bytes) -> list[dict[str, Any]]:
    return list(_found(msgspec.json.decode(raw).get("content"))) if _BYTES in raw else []


def _found(value: object) -> Iterator[dict[str, Any]]:
    """Yields the marks on a list of blocks, and on blocks inside results; the input of a call is no place for marks."""
    for block in value if isinstance(value, list) else ():
        if isinstance(block, dict):
            yield from _found(block.get("content"))
            mark = block.get(_KEY)
            if isinstance(mark, dict):
                yield mark


def _long_behind(raws: Sequence[bytes]) -> bool:
    """Whether a mark that lives an hour follows: a mark with a shorter life mustn't stand before it."""
    return any(mark.get("ttl") == _LONG for raw in raws for mark in _marks(raw))


def _without_first(raw: bytes) -> bytes:
    fields = _fields.decode(raw)
    blocks = _blocks.decode(fields["content"])
    for index, block in enumerate(blocks):
        value = msgspec.json.decode(block)
        if any(True for _ in _found([value])):
            _drop_first(value)
            blocks[index] = msgspec.Raw(msgspec.json.encode(value))
            break
    fields["content"] = msgspec.Raw(msgspec.json.encode(blocks))
    return msgspec.json.encode(fields)


def _drop_first(block: dict[str, Any]) -> None:
    inner = block.get("content")
    for item in inner if isinstance(inner, list) else ():
        if isinstance(item, dict) and isinstance(item.get(_KEY), dict):
            del item[_KEY]
            return
    del block[_KEY]


def _with_mark(raw: bytes, text: str, *, long: bool) -> bytes:
    fields = _fields.decode(raw)
    blocks = _blocks.decode(fields["content"])
    life = {"ttl": _LONG} if long else {}
    for index, block in enumerate(blocks):
        value = msgspec.json.decode(block)
        if isinstance(value, dict) and (value.get("text") == text or value.get("type") == "compaction"):
            blocks[index] = msgspec.Raw(msgspec.json.encode({**value, _KEY: {"type": "ephemeral", **life}}))
    fields["content"] = msgspec.Raw(msgspec.json.encode(blocks))
    return msgspec.json.encode(fields)
