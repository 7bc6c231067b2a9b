"""Values that a name or a sentence says are secret: assignments, fields, arguments, flags, and passwords in prose."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from proxy.secret_shapes.probe import Probe, Secret, places
from proxy.secret_shapes.values import is_placeholder, is_random

_ESCAPE = r"\\(?!\\{0,8}[nrt\"'`])"  # a backslash that isn't the start of an escaped line break or quote


def _run(characters: str) -> str:
    """A value of these characters and of escapes, written so that a match walks it once."""
    return rf"{characters}{{0,400}}+(?:{_ESCAPE}{characters}{{0,400}}+){{0,40}}+"


_BARE = _run(r"[^\s\"'`\\,;<>()\[\]{}&|，。；]")
_QUOTED = "|".join(
    f"{quote}(?P<{name}>{_run(inside)})"
    for quote, name, inside in (('"', "double", r'[^"\\\n]'), ("'", "single", r"[^'\\\n]"), ("`", "back", r"[^`\\\n]"))
)
_QUOTES = ("double", "single", "back")
_WORDS = (
    b"pass", b"pwd", b"secret", b"token", b"key", b"credential", b'auth"', b"senha", b"clave",
)  # fmt: skip
_RARE_WORDS = (b"kennwort", b"wachtwoord", b"heslo", b"parola")
ANCHORS = (*_WORDS, *_RARE_WORDS, b"\\u")  # without one of them, and without letters beyond ASCII, nothing is found
_OTHER_WORDS = (
    "пароль", "Пароль", "密码", "密碼", "パスワード", "비밀번호", "كلمة المرور", "كلمة السر", "contraseña",
    "Contraseña", "hasło", "Hasło", "şifre", "Şifre", "lösenord", "Lösenord",
)  # fmt: skip


def _escaped(word: str) -> str:
    """A word as JSON in plain ASCII spells it, at any depth of quoting; the first backslash stands before it."""
    spelled = [letter if letter.isascii() else rf"\\{{1,8}}u{ord(letter):04x}" for letter in word]
    return "".join(spelled).removeprefix(r"\\{1,8}")


_FOREIGN = tuple((word, max(re.findall(r"[^\x00-\x7f]+", word), key=len).encode()) for word in _OTHER_WORDS)
_ESCAPED_START = re.compile("|".join(rf"u{ord(word[0]):04x}" for word in _OTHER_WORDS if not word[0].isascii()))
_ESCAPED_WORD = re.compile("|".join(_escaped(word) for word in _OTHER_WORDS if not word[0].isascii()), re.IGNORECASE)
_HALF_ESCAPED = re.compile(r"(?:contrase|has)\\{1,8}u(?:00f1a|0142o)", re.IGNORECASE)
_COPULA = r"(?:is|was|to|ist|lautet|est|es|é|è|är|er|jest|هي|هو)"
_CJK = "|".join(rf"{sign}|\\{{1,8}}{_escaped(sign)}" for sign in ("是", "は", "는", "은"))
_SIGN = rf"(?::=|=>|==?|[:：]|[—–]|\\{{1,8}}(?:{_escaped('：')}|{_escaped('—')}))"
_FILLER = r"(?:[ \t]{1,2}[^\s\"'`=:：;,.!?()<>{}\[\]\\—–]{1,20}){1,4}?"
_SEPARATOR = (
    rf"(?P<told>[ \t]{{0,8}}{_SIGN}[ \t]{{0,8}}f?)"
    rf"|(?P<copula>[ \t]{{1,2}}{_COPULA}[ \t]{{1,2}}|[ \t]?(?:{_CJK})[ \t]?)"
    rf"|(?P<distant>{_FILLER}(?:[ \t]{{1,2}}{_COPULA}[ \t]{{1,2}}|[ \t]{{0,2}}[:：—–][ \t]{{1,2}}))"
    r"|(?P<argument>[ \t]{0,2},[ \t]{0,2}|\][ \t]{0,4}=[ \t]{0,4}"
    r"|[ \t\n]{0,4},[ \t\n]{0,20}\\{0,3}\"value\\{0,3}\"[ \t]{0,2}:[ \t]{0,2})"
    r"|(?P<element>>)|(?P<space>[ \t]{1,2})"
)
_ASSIGNED = re.compile(  # behind the word
    r"(?P<ending>w(?:or)?[dt]|phrase|code|e|s)?(?:_?(?:base64|base|value|[0-9]{1,2}))?(?![A-Za-z0-9])"
    r"(?P<close>\\{0,3}[\"'`])?"
    rf"(?:{_SEPARATOR})"
    rf"(?:\\{{0,3}}(?-i:{_QUOTED})|(?P<bare>(?-i:{_BARE})))",
    re.IGNORECASE,
)
# what stands directly behind a word that announces nothing: most words in programs
_NO_VALUE = frozenset((b"", *(bytes((sign,)) for sign in b".);(+*/<!&|#@$%^~{}\n\r")))
_NAME_BEFORE = re.compile(r"[A-Za-z0-9_. -]{0,24}\Z")
_WEAK = (
    "token",
    "key",
    "credential",
    "credentials",
    "pass",
    "auth",
    "clave",
    "secret",
)  # words with other meanings too
_CODE = re.compile(r"[A-Za-z_$][A-Za-z_$]*[0-9]{0,2}(?:[?!]?\.[A-Za-z_$]+[0-9]{0,2})+[?!]?|[A-Za-z_]+_[A-Za-z_]+")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_LONG_RUN = 200  # a run of characters that was refused whole isn't looked at again from each place in it
_KEY_NAMES = re.compile(
    r"(?:api|access|secret|private|auth|encryption|signing|master|service|client|shared|session|account|license|deploy)"
    r"[_. -]?\Z",
    re.IGNORECASE,
)
_OPEN_NAMES = re.compile(
    r"(?:public|publishable|partition|primary|foreign|sort|cache|idempotency|row|group|shard|translation|event)"
    r"[_. -]?\Z",
    re.IGNORECASE,
)
_OPEN_VALUES = ("ssh-", "pk_", "/", "~/", "./", "../", "http://", "https://")
_SAID_WITH = re.compile(
    r"(?:--[a-z-]{0,16}|\b(?:with|mit|avec|con|com|the)[ \t](?:the[ \t])?|\blogin[ \t]\S{1,60}[ \t])\Z"
)


class _Said(NamedTuple):
    """A word that announces a secret, from where to where it stands, and the match of all that follows it."""

    word: str
    start: int
    match: re.Match[str]


def assignments(probe: Probe) -> Iterator[Secret]:
    """Gives the values that their name says are secret."""
    text, done = probe.text, 0
    for at, end in sorted(_places(probe)):
        if at < done or probe.low[end : end + 1] in _NO_VALUE:
            continue
        match = _ASSIGNED.match(text, end)
        if match is None or (match["ending"] == "s" and text[at] not in "cC"):  # credentials, but no tokens
            continue
        secret = _assigned(text, _Said((text[at:end] + (match["ending"] or "")).lower(), at, match))
        if secret:
            done = secret.end
            yield secret
        elif match.end() - at > _LONG_RUN:
            done = match.end()


def _places(probe: Probe) -> Iterator[tuple[int, int]]:
    """Gives where the words begin and end."""
    text, low = probe.text, probe.low
    for anchor in filter(low.__contains__, (*_WORDS, *_RARE_WORDS) if probe.human else _WORDS):
        length = len(anchor.rstrip(b'"'))
        for at in places(low, anchor):
            yield at, at + length
    if probe.foreign:
        for word, telling in _FOREIGN:
            if telling in probe.foreign:
                for at in places(text, word):
                    yield at, at + len(word)
    if b"\\u" in low:
        yield from _escaped_places(probe)


def _escaped_places(probe: Probe) -> Iterator[tuple[int, int]]:
    for at in places(probe.low, b"\\u"):
        word = _ESCAPED_WORD.match(probe.text, at + 1) if _ESCAPED_START.match(probe.text, at + 1) else None
        word = word or _HALF_ESCAPED.match(probe.text, max(0, at - 8 if probe.text[at - 1] != "s" else at - 3))
        if word:
            yield word.start(), word.end()


def _assigned(text: str, said: _Said) -> Secret | None:
    match = said.match
    group = match.lastgroup or "bare"
    value = _trimmed(match[group], group)
    if len(value) < 3 or (group == "bare" and _is_code(text, match, value)):
        return None
    if is_placeholder(value) or value.startswith(_OPEN_VALUES):
        return None
    if not _holds(text, said, group, value):
        return None
    start = match.start(group)
    kind = said.word if said.word in ("token", "key", "secret") else "password"
    return Secret(start, start + len(value), kind, value)


def _is_code(text: str, match: re.Match[str], value: str) -> bool:
    """Whether an unquoted value is a call or a name in program code."""
    if text[match.end() : match.end() + 1] in ("(", "["):
        return True
    return _CODE.fullmatch(value) is not None and (match["told"] != "=" or "." in value)


def _trimmed(value: str, group: str) -> str:
    """A bare value ends before the marks of its sentence, one in Japanese before the letters of its sentence."""
    if group != "bare":
        return value.rstrip("\\")
    if not value.isascii():
        told = re.match(r"[!-~]{4,}(?=です|であ|だ|입니다|이다|이야)", value)
        value = told[0] if told else value
    return value.rstrip("\\.:!?…。")


def _holds(text: str, said: _Said, group: str, value: str) -> bool:
    """Whether the name, what stands between it and the value, and the value itself together say that it is secret."""
    match = said.match
    before = _NAME_BEFORE.search(text, max(0, said.start - 24), said.start)
    name = before[0] if before else ""
    quoted, random = group in _QUOTES, is_random(value) and not _TIME.match(value)
    if not _between(text, said, quoted=quoted, random=random):
        return False
    if not quoted and not _given(text, said, random=random):
        return False
    if said.word not in _WEAK:
        return random or quoted or match["told"] is not None or match["element"] is not None
    if _OPEN_NAMES.search(name):
        return False
    return (random and len(value) >= 8) or _named(text, name, said, value)


def _between(text: str, said: _Said, *, quoted: bool, random: bool) -> bool:
    """Whether what stands between name and value lets the value be meant at all."""
    match = said.match
    if match["close"] and match["copula"] is None and match["told"] is None:
        return match["argument"] is not None and quoted and random
    if match["argument"] is not None:
        return False
    if match["space"] is not None:
        window = text[max(0, said.start - 70) : said.start].lower()
        told = quoted and said.word not in _WEAK and any(char.isdigit() for char in match[match.lastgroup or ""])
        return told or ((random or quoted) and _SAID_WITH.search(window) is not None)
    if match["element"] is not None:
        return text[match.end() : match.end() + 2] == "</" and " " not in match[match.lastgroup or "bare"]
    return quoted or random or match["told"] is not None


def _given(text: str, said: _Said, *, random: bool) -> bool:
    """Whether an unquoted value is given as such, not the next word of a sentence or a name in program code."""
    match = said.match
    after = text[match.end() : match.end() + 2]
    if random or match["element"] is not None:
        return True
    told = match["told"] or ""
    path = told == ":" and text[said.start - 1 : said.start] == ":"  # a:secret:b names a thing
    return not path and not (":" in told and after[:1] == " " and bool(after[1:].strip()))


def _named(text: str, name: str, said: _Said, value: str) -> bool:
    """Whether the name before a word with other meanings says that this is a credential."""
    if " " in value or len(value) < 6 or value.isdigit():
        return False
    match = said.match
    if name.endswith("_") and text[said.start : match.start()].isupper():
        return True
    if said.word == "secret":
        told = match["told"] or ""
        return match.lastgroup in _QUOTES or "=" in told or (bool(told) and name.endswith("_"))
    return said.word == "key" and bool(_KEY_NAMES.search(name)) and len(value) >= 8
