"""Secrets in HTTP headers: credentials and cookies."""

from __future__ import annotations

import re
from collections.abc import Iterator

from proxy.secret_shapes.probe import Probe, Secret, places
from proxy.secret_shapes.values import is_mixed, is_random

_BEARER = re.compile(r"(?P<scheme>bearer)[ \t]{1,4}(?P<value>[A-Za-z0-9._~+/=-]{8,8000})", re.IGNORECASE)
_AUTHORIZATION = re.compile(
    r"authorization(?:\\{0,3}[\"'])?[ \t]{0,4}[:=][ \t]{0,4}f?(?:\\{0,3}[\"'])?"
    r"(?P<scheme>[A-Za-z][A-Za-z0-9-]{1,20}[ \t]{1,3})?(?P<value>[A-Za-z0-9._~+/=-]{8,4000})",
    re.IGNORECASE,
)
_SCHEMES = ((b"bearer", "bearer", _BEARER), (b"authorization", "authorization", _AUTHORIZATION))
_COOKIE = re.compile(r"cookie(?:\\{0,3}[\"'])?[ \t]{0,4}[:=][ \t]{0,4}(?:\\{0,3}[\"'])?", re.IGNORECASE)
_PAIR = re.compile(r"[ \t]{0,4}[A-Za-z0-9_.$-]{1,80}(?:=(?P<value>[^;\s\"'\\]{0,4000}))?(?:;|(?=[\s\"'\\])|\Z)")
_PAIRS = 60


def headers(probe: Probe) -> Iterator[Secret]:
    """Gives credentials and the values of cookies."""
    for word, kind, pattern in _SCHEMES:
        for at in places(probe.low, word):
            match = pattern.match(probe.text, at)
            if match and (is_random(match["value"]) or _basic(match["scheme"], match["value"])):
                yield Secret(match.start("value"), match.end("value"), kind, match["value"])
    done = 0
    for at in places(probe.low, b"cookie"):
        start = _COOKIE.match(probe.text, at) if at >= done else None
        for pair in _pairs(probe.text, start.end()) if start else ():
            done = pair.end()
            value = pair["value"] or ""
            if len(value) >= 12 and is_random(value):
                yield Secret(pair.start("value"), pair.end("value"), "cookie", value)


def _basic(scheme: str | None, value: str) -> bool:
    """Whether an encoded name and password is given, which can be short and without digits."""
    return bool(scheme) and is_mixed(value) and "." not in value and "-" not in value and "_" not in value


def _pairs(text: str, at: int) -> Iterator[re.Match[str]]:
    for _ in range(_PAIRS):
        pair = _PAIR.match(text, at)
        if not pair or pair.end() == at:
            return
        yield pair
        at = pair.end()
