"""Usage that is raised to what the client's own body would have cost, and nothing else of an answer."""

from __future__ import annotations

import json

import pytest

from proxy.dialects.usage import raised, raised_events, whole_events
from tests.fake_model import event


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            b'{"choices":[{"t":"\\"usage\\" 5"}],"usage": {"prompt_tokens": 995,"total_tokens":1000}, "x":1.50}',
            b'{"choices":[{"t":"\\"usage\\" 5"}],"usage": {"prompt_tokens": 1095,"total_tokens":1100}, "x":1.50}',
        ),
        (
            b'{"object":"response","usage":{"input_tokens":5,"input_tokens_details":{"cached_tokens":3},"total_tokens":9}}',
            b'{"object":"response","usage":{"input_tokens":105,"input_tokens_details":{"cached_tokens":3},"total_tokens":109}}',
        ),
        (
            b'{"type":"response.completed","response":{"id":"r","usage":{"input_tokens":5,"output_tokens":2}}}',
            b'{"type":"response.completed","response":{"id":"r","usage":{"input_tokens":105,"output_tokens":2}}}',
        ),
        (
            b'{"type":"message_start","message":{"usage":{"input_tokens":5,"cache_read_input_tokens":7}}}',
            b'{"type":"message_start","message":{"usage":{"input_tokens":105,"cache_read_input_tokens":7}}}',
        ),
    ],
)
def test_the_prompts_numbers_grow_and_every_other_byte_stays(before, after):
    assert raised(before, 100) == after


@pytest.mark.parametrize(
    "data",
    [
        b'{"choices":[],"usage":null}',
        b'{"type":"message_delta","usage":{"output_tokens":9}}',
        b'{"usage":{"prompt_tokens":null}}',
        b'{"usage":{"prompt_tokens":1},"usage":{"prompt_tokens":2}}',
        b'{"usage":{"prompt_tokens":1',
        b'{"response":{"output":[{"usage":{"input_tokens":1}}]}}',
        b'["usage"]',
        b"",
    ],
)
def test_what_tells_no_prompt_or_cannot_be_placed_stays_as_it_is(data):
    assert raised(data, 100) == data


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_only_the_events_that_report_usage_change(end):
    stream = (
        event({"choices": [{"delta": {"content": 'no "usage"\u2028 here'}}]})
        + b": keep-alive\n\n"
        + event({"choices": [], "usage": {"prompt_tokens": 5}})
        + b"data: [DONE]\n\n"
    ).replace(b"\n", end)
    assert raised_events(stream, 100) == stream.replace(b'"prompt_tokens": 5', b'"prompt_tokens": 105')
    named = b"event: message_start" + end + b'data:{"message":{"usage":{"input_tokens":5}}}' + end * 2
    assert raised_events(named, 1) == named.replace(b":5}", b":6}")


def test_the_end_of_the_last_whole_event_is_found():
    assert whole_events(b"data: 1\n\ndata: 2\r\n\r\ndata: 3") == 20
    assert whole_events(b"data: 1\n") == 0
    assert json.loads(raised(b'{"usage":{"prompt_tokens":0}}', 7)) == {"usage": {"prompt_tokens": 7}}
