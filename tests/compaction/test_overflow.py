"""Refusals for length, in the words of many servers; other refusals are no overflow."""

from __future__ import annotations

import json

import pytest

from proxy.compaction.overflow import Overflow, overflow


def error(message: str, **fields: object) -> bytes:
    return json.dumps({"error": {"message": message, **fields}}).encode()


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (
            400,
            error(
                "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens."
            ),
            Overflow(8192),
        ),
        (400, error("too long", code="context_length_exceeded"), Overflow()),
        (
            400,
            error("prompt is too long: 205123 tokens > 200000 maximum", type="invalid_request_error"),
            Overflow(200_000),
        ),
        (
            400,
            error(
                "the request exceeds the available context size",
                type="exceed_context_size_error",
                n_ctx=4096,
                n_prompt_tokens=5000,
            ),
            Overflow(4096, 5000),
        ),
        (
            400,
            error("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."),
            Overflow(1_048_576),
        ),
        (413, b"<html>Request Entity Too Large</html>", Overflow()),
        (400, b'{"error": "Please reduce the length of the messages."}', Overflow()),
        (400, b'[{"error": {"message": "Input is too long for requested model."}}]', Overflow()),
        (422, b"maximum context length is 32,768 tokens", Overflow(32_768)),
    ],
)
def test_a_refusal_for_length_is_recognised_with_its_figures(status: int, body: bytes, expected: Overflow):
    assert overflow(status, body) == expected


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, error("maximum context length is 8192 tokens")),
        (401, error("maximum context length is 8192 tokens")),
        (400, error("max_tokens is too large: 99999. This model supports at most 4096 completion tokens")),
        (400, error("messages: unexpected role")),
        (429, error("Rate limit reached: too many tokens per minute")),
        (500, b""),
        (400, b"\xff\xfe"),
        (400, b"3"),
        (400, b"null"),
    ],
)
def test_other_refusals_are_no_overflow(status: int, body: bytes):
    assert overflow(status, body) is None
