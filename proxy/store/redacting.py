"""Takes words out of stored texts: what matches a pattern becomes `[forgotten]`, also inside JSON and sealed values."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

FORGOTTEN = "[forgotten]"
_TOKEN = re.compile(r"(\[secret:[a-z_]{1,24}:[0-9a-f]{16}\])")
# Fields whose values are ids and words of ours: taking a part of one out would break the record and forget nothing.
_CLIENT = frozenset({"id", "type", "role", "object", "tool_call_id", "tool_use_id", "call_id"})
_FACT = frozenset({"id", "pin", "kind", "status", "scope", "session", "branch", "message", "supersedes"})
_OWN = frozenset(
    {
        "id", "at", "branch", "session", "track", "parent", "line", "kind", "relation", "role", "type", "status",
        "dialect", "placement", "anchor", "message", "digest", "forwarded", "compaction", "mode", "profile", "origin",
        "flags", "insertions", "pins", "partial", "humans", "covers", "replaces", "withdrawn", "stripped", "candidates",
        "strong", "session_match", "hash", "key", "whole", "lines", "reason", "reasoning", "branches", "other", "sent",
        "frame", "gap",
    }
)  # fmt: skip
_STRUCTURE = {"messages": _CLIENT, "answers": _CLIENT, "frames": _CLIENT, "facts": _FACT, "fact_events": _FACT}
_WIRE = _CLIENT | {
    "content", "text", "name", "arguments", "function", "tool_calls", "output", "input", "status", "summary", "source",
    "encrypted_content", "annotations", "refusal", "cache_control", "is_error", "media_type", "data", "image_url",
    "url", "detail", "thinking", "signature", "index", "calls", "items", "finish", "complete",
}  # fmt: skip
_NONE: frozenset[str] = frozenset()


class Redactor:
    """Replaces what a pattern matches; `opened` gives the value behind a secret's token, None without the key."""

    def __init__(self, pattern: re.Pattern[str], opened: Callable[[str], str | None]) -> None:
        self._pattern = pattern
        self._opened = opened

    def column(self, text: str, table: str) -> str:
        """Gives a stored column of a table without the words; JSON stays JSON."""
        if text[:1] not in ("{", "[", '"'):
            return self._words(text)
        try:
            value = json.loads(text)
        except ValueError:
            return self._words(text)
        left = self._walked(value, _STRUCTURE.get(table, _OWN))
        return text if left == value else json.dumps(left, ensure_ascii=False, separators=(",", ":"))

    def matches(self, text: str, table: str) -> bool:
        """Whether a stored column, or a secret value in it, holds the words."""
        return self.column(text, table) != text

    def _walked(self, value: Any, fixed: frozenset[str]) -> Any:  # noqa: ANN401  any JSON
        if isinstance(value, str):
            return self._string(value)
        if isinstance(value, list):
            return [self._walked(one, fixed) for one in value]
        if isinstance(value, dict):
            return {
                self._key(k, fixed): v if k in fixed and _bare(v) else self._walked(v, fixed) for k, v in value.items()
            }
        return value

    def _key(self, name: str, fixed: frozenset[str]) -> str:
        """Names of fields of ours and of the wire stay; what a tool named so goes."""
        return name if fixed not in (_CLIENT, _NONE) or (fixed is _CLIENT and name in _WIRE) else self._words(name)

    def _string(self, text: str) -> str:
        """A string may itself hold JSON, as the arguments of a call do, with escapes of its own."""
        if text[:1] in ("{", "["):
            try:
                value = json.loads(text)
            except ValueError:
                return self._words(text)
            left = self._walked(value, _NONE)
            return self._words(text if left == value else json.dumps(left, ensure_ascii=False))
        return self._words(text)

    def _words(self, text: str) -> str:
        if "[secret:" not in text:
            return self._pattern.sub(FORGOTTEN, text)
        parts = _TOKEN.split(text)
        values = [self._value(part) if place % 2 else part for place, part in enumerate(parts)]
        left = [
            self._part(part, value, token=bool(place % 2))
            for place, (part, value) in enumerate(zip(parts, values, strict=True))
        ]
        opened = [value if one == part else one for one, part, value in zip(left, parts, values, strict=True)]
        # what still matches stands across the edge of a secret value: then the whole text goes
        return FORGOTTEN if self._pattern.search("".join(opened)) else "".join(left)

    def _part(self, part: str, value: str, *, token: bool) -> str:
        if token:
            return FORGOTTEN if self._pattern.search(value) else part
        return self._pattern.sub(FORGOTTEN, part)

    def _value(self, token: str) -> str:
        found = self._opened(token.rpartition(":")[2].rstrip("]"))
        return token if found is None else found


def _bare(value: Any) -> bool:  # noqa: ANN401  any JSON
    """Whether a value holds no fields of its own."""
    return not (isinstance(value, dict) or (isinstance(value, list) and any(isinstance(one, dict) for one in value)))
