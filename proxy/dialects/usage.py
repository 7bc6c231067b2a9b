"""Raises the prompt's size in what a model reports of its usage; no other byte of the answer changes."""

from __future__ import annotations

import re

from proxy.dialects.jsonbytes import object_fields, value_span
from proxy.errors import UnreadableBody

_PLACES = (("usage",), ("response", "usage"), ("message", "usage"))  # an answer, or an event that carries one
_PROMPT = ("prompt_tokens", "input_tokens")  # chat · Responses, Messages
_TOTAL = "total_tokens"
_KEY = b'"usage"'
_BORDER = re.compile(rb"(\r\n\r\n|\n\n|\r\r)")
_DATA = re.compile(rb"(?:\A|[\r\n])data: ?([^\r\n]*)")


def raised(data: bytes, by: int) -> bytes:
    """Gives an answer, or the data of one event, with so many tokens more in its prompt and in its total.

    What reports no usage, or can't be read, stays as it is.
    """
    if _KEY not in data:
        return data
    for place in _PLACES:
        try:
            found = _replaced(data, place, by)
        except UnreadableBody:
            return data
        if found is not None:
            return found
    return data


def raised_events(events: bytes, by: int) -> bytes:
    """Gives whole server-sent events, each with so many tokens more where it reports usage."""
    if _KEY not in events:
        return events
    return b"".join(_event(piece, by) for piece in _BORDER.split(events))


def whole_events(data: bytes) -> int:
    """Gives how many bytes at the beginning are whole events."""
    return max(
        (data.rfind(border) + len(border) for border in (b"\n\n", b"\r\n\r\n", b"\r\r") if border in data), default=0
    )


def _event(event: bytes, by: int) -> bytes:
    lines = list(_DATA.finditer(event))
    if len(lines) != 1:  # JSON over several lines: nobody writes that, and it isn't worth guessing
        return event
    start, end = lines[0].span(1)
    return event[:start] + raised(event[start:end], by) + event[end:]


def _replaced(data: bytes, place: tuple[str, ...], by: int) -> bytes | None:
    """Gives the JSON object with the usage at this place raised, None when there is none."""
    if not place:
        return _more(data, by)
    if not data.lstrip().startswith(b"{"):
        return None
    fields = object_fields(data)
    if place[0] not in fields:
        return None
    inner = _replaced(fields[place[0]], place[1:], by)
    if inner is None:
        return None
    start, end = value_span(data, fields, place[0])
    return data[:start] + inner + data[end:]


def _more(usage: bytes, by: int) -> bytes | None:
    """Gives a usage object with higher numbers, None when it tells no size of the prompt."""
    if not usage.startswith(b"{"):
        return None
    names = object_fields(usage)
    if not any(names.get(name, b"").isdigit() for name in _PROMPT):
        return None
    for name in (*_PROMPT, _TOTAL):
        fields = object_fields(usage)
        if fields.get(name, b"").isdigit():
            start, end = value_span(usage, fields, name)
            usage = usage[:start] + str(int(fields[name]) + by).encode() + usage[end:]
    return usage
