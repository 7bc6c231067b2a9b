"""What a value looks like: a placeholder, a word, or something that nobody would guess."""

from __future__ import annotations

import re

_PLACEHOLDER = re.compile(
    r"(?:[xX*.•…#?_-]+|<.*|\$.*|%.*|\{.*|\[.*|\(.*|!Ref\b.*|null|none|nil|true|false|undefined|required|optional|string|str"
    r"|int|bytes|bool|any|object|self|changeme|change[_-]me|(?:your|my|the|enter)[ _-].*|example|redacted|hidden|unset"
    r"|empty|missing|invalid|expired|dummy"
    r"|(?:new[_ ]?|old[_ ]?)?(?:password|passwort|passwd|secret|token|key|value|api[_-]?key))",
    re.IGNORECASE,
)
_LETTER = re.compile(r"[^\W\d_]")
_DIGIT = re.compile(r"\d")
_CUT = re.compile(r"[-_./:@ ]")
_MEASURE = re.compile(r"v?\d+[a-z]{1,3}|[A-Za-z]{1,4}\d{1,3}", re.IGNORECASE)  # 12ms, v2, sha256
_VARIED = 6  # different characters that a random value has at least


def is_placeholder(value: str) -> bool:
    """Whether a value only says that one belongs here."""
    return (len(value) > 4 and value[-5:] == value[-1] * 5) or _PLACEHOLDER.fullmatch(value) is not None


def is_random(value: str) -> bool:
    """Whether a value is unlike words: letters and digits within one piece of it, or long and of mixed case."""
    if not 6 <= len(value) == len(value.encode("ascii", "ignore")) or " " in value or len(set(value)) < _VARIED:
        return False
    if not _LETTER.search(value):
        return False
    if _DIGIT.search(value):
        return any(_mingled(piece) for piece in _CUT.split(value)) or _signs(value) > 2
    return len(value) >= 20 and "/" not in value and is_mixed(value)


def _mingled(piece: str) -> bool:
    if len(piece) < 4 or not (_DIGIT.search(piece) and _LETTER.search(piece)):
        return False
    return not _MEASURE.fullmatch(piece)


def _signs(value: str) -> int:
    return sum(not (char.isalnum() or char in "-_./:@ ") for char in value)


def is_mixed(value: str) -> bool:
    """Whether a value has both small and large letters."""
    return value not in (value.lower(), value.upper())
