"""Places of values inside JSON bytes, so that untouched parts of a body go out as they came."""

from __future__ import annotations

import msgspec

from proxy.errors import UnreadableBody

_object = msgspec.json.Decoder(dict[str, msgspec.Raw])
_array = msgspec.json.Decoder(list[msgspec.Raw])
_WHITE = b" \t\r\n"


def object_fields(data: bytes) -> dict[str, bytes]:
    """Gives the raw value of each key of a JSON object. Raises UnreadableBody."""
    try:
        return {key: bytes(value) for key, value in _object.decode(data).items()}
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnreadableBody(f"the body is not a JSON object: {error}") from error


def array_items(data: bytes) -> list[bytes]:
    """Gives the raw items of a JSON array. Raises UnreadableBody."""
    try:
        return [bytes(item) for item in _array.decode(data)]
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnreadableBody(f"not a JSON array: {error}") from error


def value_span(body: bytes, fields: dict[str, bytes], name: str) -> tuple[int, int]:
    """Gives start and end of a top-level value in `body`.

    Walks from key to key, jumping over each value by its known length. A key that stands twice makes the walk miss the
    end: then the body means different things to different parsers, and UnreadableBody is raised.
    """
    found = (0, 0)
    position = _skip(body, body.index(b"{") + 1)
    for key, value in fields.items():
        start = _skip(body, _after_string(body, position))
        if body[start : start + 1] != b":":
            break
        start = _skip(body, start + 1)
        if not body.startswith(value, start):
            break
        if key == name:
            found = start, start + len(value)
        position = _skip(body, start + len(value))
        if body[position : position + 1] == b"}" and found[1]:
            return found
        position = _skip(body, position + 1)
    raise UnreadableBody(f"can't place the key {name!r} in the body (is a key there twice?)")


def _skip(body: bytes, position: int) -> int:
    while position < len(body) and body[position] in _WHITE:
        position += 1
    return position


def _after_string(body: bytes, position: int) -> int:
    """Gives the place behind the JSON string that starts at `position`."""
    position += 1
    while True:
        quote = body.find(b'"', position)
        if quote < 0:
            raise UnreadableBody("a key without an end")
        backslashes = 0
        while body[quote - 1 - backslashes] == 0x5C:
            backslashes += 1
        position = quote + 1
        if backslashes % 2 == 0:
            return position
