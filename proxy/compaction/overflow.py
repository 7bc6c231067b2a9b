"""Recognises that an upstream refused a body for its length, whatever words its server uses.

Wordings: OpenAI, Anthropic, vLLM, llama.cpp, Gemini, OpenRouter, as their servers and the SDKs' own checks show them.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

_STATUSES = (400, 413, 422, 500)
_CODES = ("context_length_exceeded", "exceed_context_size_error", "request_too_large", "model_context_window_exceeded")
_WORDS = re.compile(
    r"maximum context length|exceeds? the (?:available )?context (?:window|size|length)"
    r"|context (?:window|length|limit) (?:was )?exceed|exceeds? .{0,30}context window"
    r"|(?:prompt|input) is too long|input token count .{0,40}exceeds|input tokens exceed"
    r"|reduce the length of the (?:messages|prompt|input)|too many (?:input )?tokens|request(?: entity)? too large",
    re.IGNORECASE,
)
_OUTPUT_ONLY = re.compile(r"^\W*max_(?:completion_|output_|new_)?tokens\b", re.IGNORECASE)
_LIMIT = re.compile(
    r"(?:maximum context length is|> |tokens allowed \(|context (?:window|size|length)(?: of)? \(?)\s*(\d[\d,]{2,})",
    re.IGNORECASE,
)
_LONGEST = 8_000  # bytes of an error body that are read


class Overflow(msgspec.Struct, frozen=True):
    """A refusal for length; `window` and `prompt` are the server's figures in tokens, 0 when it gave none."""

    window: int = 0
    prompt: int = 0


def overflow(status: int, body: bytes) -> Overflow | None:
    """Gives what an error answer says about the context window, or None when it is about something else."""
    if status not in _STATUSES:
        return None
    text = body[:_LONGEST].decode(errors="replace")
    error = _error(body[:_LONGEST])
    message = str(error.get("message", "")) or text
    if _OUTPUT_ONLY.match(message):
        return None
    named = any(str(error.get(key)) in _CODES for key in ("code", "type"))
    if not (status == 413 or named or _WORDS.search(message)):
        return None
    limit = _LIMIT.search(message)
    window = _figure(error.get("n_ctx")) or (int(limit.group(1).replace(",", "")) if limit else 0)
    return Overflow(window=window, prompt=_figure(error.get("n_prompt_tokens")))


def _error(body: bytes) -> dict[str, Any]:
    """The error object: under `error`, at the top level, or in the first item of an array."""
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
    if isinstance(value, list) and value:
        value = value[0]
    if not isinstance(value, dict):
        return {}
    inner = value.get("error")
    if isinstance(inner, str):
        return {"message": inner}
    return inner if isinstance(inner, dict) else value


def _figure(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
