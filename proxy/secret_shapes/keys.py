"""Whole keys in words or lines: blocks of private keys, and phrases of words that stand for one."""

from __future__ import annotations

import re
from collections.abc import Iterator

from proxy.secret_shapes.probe import Probe, Secret, places

_KEY_BLOCK = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_BLOCK_LIMIT = 16_000
_CUT_OFF = re.compile(r"(?:[A-Za-z0-9+/=\n\r]|\\{1,4}[nr](?![a-z]{3})){0,16000}+")
_PHRASE = re.compile(
    r"(?:phrase|mnemonic)s?\\{0,3}[\"'`]?(?:[ \t]{1,2}(?:is|was|ist|lautet|est|es)\b)?[ \t]{0,4}"
    r"(?P<sign>[:=])?[ \t]{0,4}"
    r"(?:\\{0,3}[\"'`])?(?P<value>(?:[a-z]{3,8}[ ]){11}(?:(?:[a-z]{3,8}[ ]){3}){0,4}[a-z]{3,8})(?![a-z])"
    r"(?P<more>[ ][a-z])?",
    re.IGNORECASE,
)


def key_blocks(probe: Probe) -> Iterator[Secret]:
    """Gives what stands between the lines of a private key's block."""
    text, done = probe.text, 0
    for at in places(probe.plain, b"-----BEGIN "):
        match = _KEY_BLOCK.match(text, at) if at >= done else None
        if not match:
            continue
        start = match.end()
        end = text.find("-----END", start, start + _KEY_BLOCK_LIMIT)
        if end < 0:  # cut off: what looks like base64 lines is still the key
            rest = _CUT_OFF.match(text, start)
            end = rest.end() if rest else start
        if end > start:
            yield Secret(start, end, "private_key", text[start:end])
        done = end


def seed_phrases(probe: Probe) -> Iterator[Secret]:
    """Gives the 12 to 24 words from which a wallet is restored, where they are said to be that."""
    for anchor in (b"phrase", b"mnemonic") if probe.human else ():
        for at in places(probe.low, anchor):
            match = _PHRASE.match(probe.text, at)
            if match and (match["sign"] or not match["more"]):
                yield Secret(match.start("value"), match.end("value"), "seed_phrase", match["value"])
