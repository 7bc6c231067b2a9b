"""Places of values in JSON bytes: the very bytes of each value, whatever blanks, escapes and numbers stand there."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.dialects.body import BodyReader
from proxy.dialects.jsonbytes import array_items, object_fields, value_span
from proxy.errors import UnreadableBody
from proxy.transcript import Message, digest_of

BLANKS = st.text(" \t\r\n", max_size=3)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
KEYS = st.text(max_size=8) | st.sampled_from(['"', "\\", 'a"b', "\\\\", "\u2028", "é"])


@st.composite
def objects(draw: st.DrawFn) -> tuple[bytes, dict[str, bytes]]:
    """A JSON object with blanks anywhere, and the raw value of each key."""
    fields, pieces = {}, []
    for key in draw(st.lists(KEYS, min_size=1, max_size=5, unique=True)):
        ascii_only = draw(st.booleans())
        value = json.dumps(draw(VALUES), ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
        name = json.dumps(key, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
        blank = [draw(BLANKS).encode() for _ in range(4)]
        pieces.append(blank[0] + name + blank[1] + b":" + blank[2] + value + blank[3])
        fields[key] = value
    return draw(BLANKS).encode() + b"{" + b",".join(pieces) + b"}" + draw(BLANKS).encode(), fields


@settings(max_examples=60, deadline=None)
@given(objects())
def test_each_value_is_found_at_its_place_with_its_very_bytes(made: tuple[bytes, dict[str, bytes]]):
    body, expected = made
    fields = object_fields(body)
    assert fields == expected
    for name, value in fields.items():
        start, end = value_span(body, fields, name)
        assert body[start:end] == value


@settings(max_examples=40, deadline=None)
@given(objects(), st.data())
def test_a_key_that_stands_twice_is_refused_even_with_equal_values(
    made: tuple[bytes, dict[str, bytes]], data: st.DataObject
):
    body, expected = made
    key = data.draw(st.sampled_from(sorted(expected)))
    again = b"," + json.dumps(key).encode() + b":" + data.draw(st.sampled_from([expected[key], b"17"])) + b"}"
    twice = body.rstrip()[:-1] + again
    with pytest.raises(UnreadableBody):
        value_span(twice, object_fields(twice), key)


@pytest.mark.parametrize("number", ["1e5", "1E+05", "1.50", "-0.0", "0.1e-7", "123456789012345678901234567890"])
def test_the_form_of_a_number_is_kept(number: str):
    assert object_fields(b'{"n": ' + number.encode() + b"}") == {"n": number.encode()}


@pytest.mark.parametrize("broken", [b"", b"[]", b"{", b'{"a":1,}', b"\xff{}", b'{"a" 1}', b"null"])
def test_what_is_no_json_object_is_refused(broken: bytes):
    with pytest.raises(UnreadableBody):
        object_fields(broken)


def test_items_of_a_list_keep_their_bytes_without_the_blanks_between_them():
    assert array_items(b'[ {"a": 1 } ,\n "\\u00e9", 1.0]') == [b'{"a": 1 }', b'"\\u00e9"', b"1.0"]


def message(raw: bytes) -> Message:
    return Message(raw, digest_of(raw), "user", ())


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(max_size=30), min_size=2, max_size=12), st.data())
def test_a_body_that_grew_is_read_as_if_it_were_seen_for_the_first_time(texts: list[str], data: st.DataObject):
    reader = BodyReader("messages", message)
    filler = "x" * 9_000  # long enough to be remembered
    for count in range(1, len(texts) + 1):
        listed = json.dumps([{"role": "user", "content": text + filler} for text in texts[:count]])
        tail = data.draw(st.sampled_from(["}", ',"stream":true}', ' , "model": "b"}', ',"messages":[]}']))
        body = ('{"model":"a","messages":' + listed + tail).encode()
        fresh = BodyReader("messages", message)
        try:
            expected = fresh.body(body)
        except UnreadableBody:
            with pytest.raises(UnreadableBody):
                reader.body(body)
            continue
        found = reader.body(body)
        assert found.fields == expected.fields
        assert (found.head, found.tail) == (expected.head, expected.tail)
        assert [one.raw for one in found.messages] == [one.raw for one in expected.messages]
