"""Secrets in URLs: passwords and tokens before the @, signatures, addresses of hooks that anybody may call."""

from __future__ import annotations

import re
from collections.abc import Iterator

from proxy.secret_shapes.probe import Probe, Secret, places
from proxy.secret_shapes.values import is_mixed, is_placeholder, is_random

_USER = re.compile(
    r":(?:\\?/){2}(?:[^\s/@:\"'\\<>]{0,64}:(?P<password>[^\s/\"'\\<>]{1,128})|(?P<token>[A-Za-z0-9_~.-]{16,255}))@"
)
_HOOK = re.compile(
    r":(?:\\?/){2}(?=[A-Za-z0-9.-]{0,60}hook|[a-z.]{1,20}\\?/api\\?/webhooks)[A-Za-z0-9.-]{1,80}"
    r"((?:\\?/[A-Za-z0-9@._~%-]{1,200}){1,9})"
)
_SEGMENT = re.compile(r"[^/\\]{6,200}")
_SIGNED = re.compile(r"sig(?:nature)?=(?P<value>[A-Za-z0-9%+/_=-]{20,600})", re.IGNORECASE)


def urls(probe: Probe) -> Iterator[Secret]:
    """Gives passwords, tokens and signatures in URLs."""
    for anchor in (b"://", b":\\/\\/"):
        for at in places(probe.plain, anchor):
            yield from _user(probe.text, at)
            yield from _hook(probe.text, at)
    for anchor in (b"sig=", b"signature="):
        yield from _signatures(probe, anchor)


def _signatures(probe: Probe, anchor: bytes) -> Iterator[Secret]:
    done = 0
    for at in places(probe.low, anchor):
        match = _SIGNED.match(probe.text, at) if at >= done else None
        if match:
            done = match.end()
            if is_random(match["value"]):
                yield Secret(match.start("value"), done, "signature", match["value"])


def _user(text: str, at: int) -> Iterator[Secret]:
    match = _USER.match(text, at)
    if not match:
        return
    group = match.lastgroup or "password"
    value = match[group]
    if group == "token" and not is_random(value):
        return
    if not is_placeholder(value):
        yield Secret(match.start(group), match.end(group), group, value)


def _hook(text: str, at: int) -> Iterator[Secret]:
    """What stands in the path of a hook's address from the first segment on that nobody would guess."""
    match = _HOOK.match(text, at)
    if not match:
        return
    for segment in _SEGMENT.finditer(text, match.start(1), match.end(1)):
        if _unguessable(segment[0]):
            value = text[segment.start() : match.end(1)]
            yield Secret(segment.start(), match.end(1), "webhook", value)
            return


def _unguessable(segment: str) -> bool:
    known = any(char.isdigit() for char in segment) and any(char.isalpha() for char in segment)
    return known or (len(segment) >= 20 and is_mixed(segment))
