"""What leads to a person: e-mail addresses and phone numbers. Looked for only where the settings ask for it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from proxy.secret_shapes.probe import Probe, Secret, places

_LOCAL = re.compile(r"(?:\\[nrt])?(?P<name>[A-Za-z0-9._%+'-]{1,64})\Z")
_DOMAIN = re.compile(r"@(?:[A-Za-z0-9-]{1,63}\.){1,6}(?P<top>[A-Za-z]{2,24})(?![A-Za-z0-9-])")
_NOBODY = frozenset({"git", "noreply", "no-reply", "donotreply", "do-not-reply"})
_FILES = frozenset(
    {"png", "jpg", "jpeg", "gif", "svg", "webp", "js", "ts", "css", "py", "json", "md", "html"}
)  # icon@2x.png
_INTERNATIONAL = re.compile(r"\+[1-9](?:[ ./-]?\(?[0-9]\)?){7,14}(?![0-9])")
_AMERICAN = re.compile(r"(?:\([0-9]{3}\) ?|[0-9]{3}[-.])[0-9]{3}[-.][0-9]{4}(?![0-9-])")
_NAMED = re.compile(
    r"(?:phone|mobile|telefon|telephone|téléphone|teléfono|telefone|handy|cell|tel|fax|whatsapp|телефон"
    r"|电话|手机|電話|전화|هاتف)[a-z]{0,6}\.?\\{0,3}[\"']?[ \t]{0,2}"
    r"(?:(?:number|nummer|no\.?|is|ist|est|es|是|は)[ \t]{1,2}){0,2}[:：=]?[ \t]{0,2}\\{0,3}[\"']?"
    r"(?P<number>\(?0?[0-9](?:[ ./-]?\(?[0-9]\)?){6,13})(?![0-9])",
    re.IGNORECASE,
)
_NUMBER_WORDS = (b"phone", b"mobile", b"telefon", b"telefone", b"handy", b"cell", b"tel", b"fax", b"whatsapp")
_OTHER_WORDS = ("телефон", "电话", "手机", "電話", "전화", "هاتف", "téléphone", "teléfono")


def addresses_and_numbers(probe: Probe) -> Iterator[Secret]:
    """Gives e-mail addresses and phone numbers, in no order; they may overlap."""
    yield from _addresses(probe)
    yield from _numbers(probe)


def _addresses(probe: Probe) -> Iterator[Secret]:
    text, done = probe.text, 0
    for at in places(probe.plain, b"@"):
        domain = _DOMAIN.match(text, at)
        name = _LOCAL.search(text, max(done, at - 66), at) if domain else None
        if not domain or not name or domain["top"].lower() in _FILES:
            continue
        start = name.start("name")
        url = text[max(0, start - 2) : start] == "//" or text[domain.end() : domain.end() + 1] == ":"
        if url or name["name"].lower() in _NOBODY:  # ssh and http addresses are of machines
            continue
        done = domain.end()
        yield Secret(start, done, "email", text[start:done])


def _numbers(probe: Probe) -> Iterator[Secret]:
    text = probe.text
    for at in places(probe.plain, b"+"):
        match = _INTERNATIONAL.match(text, at)
        if match and (at == 0 or not text[at - 1].isalnum()):
            yield Secret(at, match.end(), "phone", match[0])
    for match in _AMERICAN.finditer(text):
        start = match.start()
        if start == 0 or not (text[start - 1].isalnum() or text[start - 1] in "-.+"):
            yield Secret(start, match.end(), "phone", match[0])
    words = [at for word in _NUMBER_WORDS for at in places(probe.low, word)]
    words += [at for word in _OTHER_WORDS if not text.isascii() for at in places(text, word)]
    for at in words:
        match = _NAMED.match(text, at)
        if match:
            yield Secret(match.start("number"), match.end(), "phone", match["number"])
