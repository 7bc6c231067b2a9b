"""Secrets on command lines behind flags that say nothing of them: -u NAME:PASSWORD, -p PASSWORD of some programs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from proxy.secret_shapes.probe import Probe, Secret, places
from proxy.secret_shapes.values import is_placeholder

_VALUE = r"[^\s\"'`\\<>|&;]{3,128}"
_USER = re.compile(rf" (?:-u|--user|--proxy-user)[ =](?:\\{{0,3}}[\"'])?[^\s\"'`\\:/<>$]{{1,64}}:(?P<value>{_VALUE})")
_PASSWORD = re.compile(rf" -p[ ]?(?:\\{{0,3}}[\"'])?(?P<value>{_VALUE})")
_PROGRAM = re.compile(r"(?:\bsshpass|\blogin\b[^\n|;&]{0,80}|\b(?:mysql|mariadb)[a-z]{0,8}\b[^\n|;&]{0,80})\Z")
_SEPARATE = re.compile(r"\bmysql|\bmariadb")  # their -p takes its value without a space


def flags(probe: Probe) -> Iterator[Secret]:
    """Gives passwords behind flags."""
    for at in places(probe.plain, b" -"):
        flag = probe.plain[at + 2 : at + 3]
        if flag == b"p":
            yield from _password(probe.text, at)
        elif flag in (b"u", b"-"):
            match = _USER.match(probe.text, at)
            if match and not is_placeholder(match["value"]) and not match["value"].isdigit():
                yield Secret(match.start("value"), match.end(), "password", match["value"])


def _password(text: str, at: int) -> Iterator[Secret]:
    match = _PASSWORD.match(text, at)
    program = _PROGRAM.search(text, max(0, at - 100), at) if match else None
    if not match or not program or is_placeholder(match["value"]):
        return
    if _SEPARATE.search(program[0]) and text[at + 3] == " ":
        return
    yield Secret(match.start("value"), match.end(), "password", match["value"])
