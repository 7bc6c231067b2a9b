"""Texts with secrets and without, made from their shapes: no real key, and nothing that a scanner would take for one.

A shape's class letters: A letters and digits, W those and - _, L lower case and digits, U upper case and digits, H hex,
D digits, B base64, P a password with a sign in it.
"""

from __future__ import annotations

import random
import re
import string
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

_FOLDER = Path(__file__).parent
_ALNUM = string.ascii_letters + string.digits
_CLASSES = {
    "A": _ALNUM,
    "W": _ALNUM + "-_",
    "L": string.ascii_lowercase + string.digits,
    "U": string.ascii_uppercase + string.digits,
    "H": "0123456789abcdef",
    "D": string.digits,
    "B": _ALNUM + "+/",
    "P": _ALNUM + "!#%^*_+-~.",
}
_RUN = re.compile(r"<([AWLUHDBP])(\d+)>")
_SECRET = re.compile(r"⟦(.+?)⟧", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Sample:
    """One text: the secrets in it (none in an innocent one), its kind, and whether it is held out from tuning."""

    kind: str
    text: str
    secrets: tuple[str, ...]
    held_out: bool


def secrets(seed: int = 1) -> Iterator[Sample]:
    """Gives a text for each shape of secret."""
    for line in _lines("shapes.txt"):
        kind, _, shape = line.partition("\t")
        filled = _filled(shape, random.Random(f"{seed} {kind}"))
        yield Sample(kind, _SECRET.sub(r"\1", filled), tuple(_SECRET.findall(filled)), _held_out(kind))


def innocent(seed: int = 1) -> Iterator[Sample]:
    """Gives texts without any secret, which look a little like one."""
    for number, line in enumerate(_lines("innocent.txt")):
        yield Sample("innocent", _filled(line, random.Random(f"{seed} {number}")), (), _held_out(line))


def _lines(name: str) -> list[str]:
    lines = (_FOLDER / name).read_text("utf-8").split("\n")
    return [line for line in lines if line and not line.startswith("# ")]


def _filled(shape: str, source: random.Random) -> str:
    def made(found: re.Match[str]) -> str:
        letters, length = _CLASSES[found[1]], int(found[2])
        run = source.choices(letters, k=length)
        if length >= 4:  # a random run of this length nearly always has a letter and a digit
            run[1], run[2] = source.choice(letters[:10]), source.choice([c for c in letters if c.isdigit()])
        if found[1] == "P":
            run[0], run[-1] = source.choice(_ALNUM), source.choice(_ALNUM)
        return "".join(run)

    return _RUN.sub(made, shape).replace("⏎", "\n")


def _held_out(name: str) -> bool:
    """A quarter of the kinds, and of the innocent lines, was never looked at while the shapes were written."""
    return blake2b(name.encode(), digest_size=1).digest()[0] % 4 == 0
