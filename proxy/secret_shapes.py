"""The shapes of secret values: vendors' key formats, key blocks, credentials in URLs, headers and assignments.

Each shape has an anchor, a literal that is looked for at memory speed; its pattern is tried only where the anchor
stands, and every repetition in a pattern is bounded, so that no text takes more than linear time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import AnyStr, NamedTuple


class Secret(NamedTuple):
    """One secret value in a text: characters start to end (exclusive), its kind and itself."""

    start: int
    end: int
    kind: str
    value: str


# (kind, anchors, pattern): an anchor stands where no letter, digit, - or _ goes before.
_VENDORS = (
    ("api_key", ("sk-",), r"sk-(?=[A-Za-z_-]{0,60}[0-9])[A-Za-z0-9_-]{12,400}"),
    ("github_token", ("gh",), r"gh[pousr]_[A-Za-z0-9]{20,255}"),
    ("github_token", ("github_pat_",), r"github_pat_[A-Za-z0-9_]{20,255}"),
    ("gitlab_token", ("glpat-",), r"glpat-[A-Za-z0-9_.-]{16,255}"),
    ("slack_token", ("xox",), r"xox[abeprs]-[A-Za-z0-9-]{10,255}"),
    ("aws_key", ("AKIA", "ASIA"), r"A[KS]IA[A-Z0-9]{16}(?![A-Za-z0-9])"),
    ("google_key", ("AIza",), r"AIza[A-Za-z0-9_-]{35}"),
    ("google_token", ("ya29.",), r"ya29\.[A-Za-z0-9_-]{20,2000}"),
    ("npm_token", ("npm_",), r"npm_[A-Za-z0-9]{30,100}"),
    ("pypi_token", ("pypi-",), r"pypi-(?=[A-Za-z_-]{0,60}[0-9])[A-Za-z0-9_-]{16,400}"),
    ("huggingface_token", ("hf_",), r"hf_[A-Za-z0-9]{20,100}"),
    ("groq_key", ("gsk_",), r"gsk_[A-Za-z0-9]{20,100}"),
    ("sendgrid_key", ("SG.",), r"SG\.[A-Za-z0-9_-]{16,100}\.[A-Za-z0-9_-]{16,100}"),
    ("stripe_key", ("sk_live_", "sk_test_", "rk_live_", "rk_test_"), r"[sr]k_(?:live|test)_[A-Za-z0-9]{10,255}"),
    ("stripe_secret", ("whsec_",), r"whsec_[A-Za-z0-9+/=]{16,255}"),
    ("twilio_key", ("SK",), r"SK[0-9a-f]{32}(?![A-Za-z0-9])"),
    ("jwt", ("eyJ",), r"eyJ[A-Za-z0-9_-]{8,4000}+\.eyJ[A-Za-z0-9_-]{8,8000}+\.[A-Za-z0-9_-]{8,2000}"),
)
_WORD_KEYS = tuple((anchor, kind, re.compile(pattern)) for kind, anchors, pattern in _VENDORS for anchor in anchors)
_URL = re.compile(r":(?:\\?/){2}[^\s/@:\"'\\<>]{0,64}:([^\s/@\"'\\<>]{1,128})@")
_HOOK = re.compile(r"hooks\.slack\.com\\?/services\\?/((?:[A-Za-z0-9]{4,20}\\?/){2}[A-Za-z0-9]{8,64})")
# (anchor, kind, pattern whose first group is the value): these may stand anywhere.
_INNER = (
    ("://", "password", _URL),
    (":\\/\\/", "password", _URL),
    ("hooks.slack.com", "slack_webhook", _HOOK),
    (":AA", "telegram_token", re.compile(r"(?<=[0-9]):(AA[A-Za-z0-9_-]{33})(?![A-Za-z0-9_-])")),
)
_KEY_BLOCK = re.compile(r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_BLOCK_LIMIT = 16_000
_CUT_OFF = re.compile(r"(?:[A-Za-z0-9+/=\n\r]|\\{1,4}[nr](?![a-z]{3})){0,16000}+")

_ESCAPE = r"\\(?!\\{0,8}[nrt\"'`])"  # a backslash that isn't the start of an escaped line break or quote


def _run(characters: str) -> str:
    """A value of these characters and of escapes, written so that a match walks it once."""
    return rf"{characters}{{0,400}}+(?:{_ESCAPE}{characters}{{0,400}}+){{0,40}}+"


_BARE = _run(r"[^\s\"'`\\,;<>()\[\]{}&|]")
_QUOTED = "|".join(
    f"{quote}(?P<{name}>{_run(inside)})"
    for quote, name, inside in (('"', "double", r'[^"\\\n]'), ("'", "single", r"[^'\\\n]"), ("`", "back", r"[^`\\\n]"))
)
_OTHER_WORDS = ("пароль", "Пароль", "密码", "密碼", "パスワード")


def _escaped(word: str) -> str:
    """A word as JSON in plain ASCII spells it, at any depth of quoting; the first backslash stands before it."""
    return r"\\{1,8}".join(f"u{ord(letter):04x}" for letter in word)


_ESCAPED_WORDS = tuple((f"\\u{ord(word[0]):04x}", _escaped(word)) for word in _OTHER_WORDS)
_IS = rf"(?:是|\\{{1,8}}{_escaped('是')})"
_COLON = rf"(?::=|=>|==?|[:：]|\\{{1,8}}{_escaped('：')})"
_ASSIGNED = re.compile(
    r"(?P<word>passw(?:or)?[dt]|passphrase|passcode|pwd|secret|token|key|credentials?"
    r"|senha|contrase(?:ñ|n|\\{1,8}u00f1)a|passe"
    rf"|{'|'.join((*_OTHER_WORDS, *(spelled for _, spelled in _ESCAPED_WORDS)))})"
    r"(?:_?(?:base64|base|value|[0-9]{1,2}))?(?![A-Za-z0-9])"
    r"(?:\\{0,3}[\"'`])?"
    rf"(?P<sep>[ \t]{{0,8}}{_COLON}[ \t]{{0,8}}|[ \t]{{1,2}}(?:is|was|to|ist|es|est|é|è)[ \t]{{1,2}}|{_IS})"
    rf"(?:\\{{0,3}}(?-i:{_QUOTED})|(?P<bare>(?-i:{_BARE})))",
    re.IGNORECASE,
)
_NAME_BEFORE = re.compile(r"[A-Za-z0-9_. -]{0,24}\Z")
_WORDS = (b"pass", b"pwd", b"secret", b"token", b"key", b"credential", b"senha", b"contrase")
_BEARER = re.compile(r"(?P<scheme>bearer)[ \t]{1,4}(?P<value>[A-Za-z0-9._~+/=-]{8,8000})", re.IGNORECASE)
_AUTHORIZATION = re.compile(
    r"authorization(?:\\{0,3}[\"'])?[ \t]{0,4}[:=][ \t]{0,4}(?:\\{0,3}[\"'])?"
    r"(?P<scheme>(?:basic|token|apikey|digest)[ \t]{1,3})?(?P<value>[A-Za-z0-9._~+/=-]{8,4000})",
    re.IGNORECASE,
)
_HEADERS = ((b"bearer", "bearer", _BEARER), (b"authorization", "authorization", _AUTHORIZATION))
_PLACEHOLDER = re.compile(
    r"(?:[xX*.•#?_-]+|<.*|\$.*|%.*|\{.*|\[.*|null|none|nil|true|false|undefined|required|optional|string|str|int|bytes"
    r"|bool|any|object|self|changeme|change[_-]me|(?:your|my|the)[ _-].*|example|redacted|hidden|unset|empty|missing"
    r"|invalid|expired"
    r"|(?:new[_ ]?|old[_ ]?)?(?:password|passwort|passwd|secret|token|key|value|api[_-]?key))",
    re.IGNORECASE,
)
_CODE = re.compile(r"[A-Za-z_][A-Za-z_]*(?:\.[A-Za-z_]+)+|[A-Za-z_]+_[A-Za-z_]+")
_LONG_RUN = 200  # a run of characters that was refused whole isn't looked at again from each place in it
_LETTER = re.compile(r"[^\W\d_]")
_DIGIT = re.compile(r"\d")
_KEY_NAMES = re.compile(
    r"(?:api|access|secret|private|auth|encryption|signing|master|service|client|shared|session|account|license|deploy)"
    r"[_. -]?\Z",
    re.IGNORECASE,
)


def shapes_in(text: str) -> list[Secret]:
    """Gives every value with the shape of a secret, in no order; they may overlap."""
    found: list[Secret] = []
    for anchor, kind, pattern in _WORD_KEYS:
        if anchor in text:
            found += _word_keys(text, anchor, kind, pattern)
    for anchor, kind, pattern in _INNER:
        if anchor in text:
            found += _inner(text, anchor, kind, pattern)
    if "-----BEGIN " in text:
        found += _key_blocks(text)
    probe = text.encode("ascii", "replace").lower()  # the same positions, one byte a character
    for word, kind, pattern in _HEADERS:
        if word in probe:
            found += _headers(text, probe, word, kind, pattern)
    found += _assignments(text, _word_places(text, probe))
    return found


def _word_places(text: str, probe: bytes) -> list[int]:
    places = [at for word in _WORDS if word in probe for at in _places(probe, word)]
    if not text.isascii():
        places += [at for word in _OTHER_WORDS if word in text for at in _places(text, word)]
    if "\\u" in text:
        places += [at + 1 for start, _ in _ESCAPED_WORDS if start in text for at in _places(text, start)]
    return places


def _places(text: AnyStr, anchor: AnyStr) -> Iterator[int]:
    at = text.find(anchor)
    while at >= 0:
        yield at
        at = text.find(anchor, at + 1)


def _word_keys(text: str, anchor: str, kind: str, pattern: re.Pattern[str]) -> Iterator[Secret]:
    for at in _places(text, anchor):
        match = pattern.match(text, at) if _begins(text, at) else None
        if match:
            yield Secret(at, match.end(), kind, match[0])


def _begins(text: str, at: int) -> bool:
    """Whether a word can begin here: nothing of a word goes before, or only the letter of an escaped line break."""
    if at == 0:
        return True
    before = text[at - 1]
    if not (before.isalnum() or before in "_-"):
        return True
    return before in "nrtbf" and at > 1 and text[at - 2] == "\\"


def _inner(text: str, anchor: str, kind: str, pattern: re.Pattern[str]) -> Iterator[Secret]:
    for at in _places(text, anchor):
        match = pattern.match(text, at)
        if match and not _PLACEHOLDER.fullmatch(match[1]):
            yield Secret(match.start(1), match.end(1), kind, match[1])


def _key_blocks(text: str) -> Iterator[Secret]:
    done = 0
    for at in _places(text, "-----BEGIN "):
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


def _headers(text: str, probe: bytes, word: bytes, kind: str, pattern: re.Pattern[str]) -> Iterator[Secret]:
    for at in _places(probe, word):
        match = pattern.match(text, at)
        if match and (_random(match["value"]) or (match["scheme"] and _mixed(match["value"]))):
            yield Secret(match.start("value"), match.end("value"), kind, match["value"])


def _assignments(text: str, places: list[int]) -> Iterator[Secret]:
    done = 0
    for at in sorted(places):
        match = _ASSIGNED.match(text, at) if at >= done else None
        secret = _assigned(text, match) if match else None
        if secret:
            done = secret.end
            yield secret
        elif match and match.end() - at > _LONG_RUN:
            done = match.end()


def _assigned(text: str, match: re.Match[str]) -> Secret | None:
    group = match.lastgroup or "bare"
    value = match[group].rstrip("\\.:!?…。" if group == "bare" else "\\")
    if len(value) < 3 or _PLACEHOLDER.fullmatch(value):
        return None
    before = _NAME_BEFORE.search(text, max(0, match.start() - 24), match.start())
    name = before[0] if before else ""
    strong = match["word"].lower() not in ("token", "key", "credential", "credentials")
    told = _told(match, value, text[match.end() : match.end() + 2]) if group == "bare" else True
    if not told and not _random(value):
        return None
    if not strong and not _random(value) and not _named_key(name, match, value):
        return None
    start = match.start(group)
    return Secret(start, start + len(value), "password" if strong else match["word"].lower(), value)


def _told(match: re.Match[str], value: str, after: str) -> bool:
    """Whether an unquoted value is given as such, not the next word of a sentence or a name in program code."""
    sep = match["sep"]
    if sep.strip() not in ("=", ":", ":=", "=>", "：") or after[:1] in ("(", "["):
        return False
    if _CODE.fullmatch(value) and (sep != "=" or "." in value):
        return False
    return not (":" in sep and after[:1] == " " and after[1:].strip())


def _named_key(name: str, match: re.Match[str], value: str) -> bool:
    """Whether the name before `key` or `token` says that this is a credential."""
    if " " in value or len(value) < 6 or value.isdigit():
        return False
    if match["word"].isupper() and name.endswith("_"):
        return True
    return match["word"].lower() == "key" and bool(_KEY_NAMES.search(name)) and len(value) >= 8


def _random(value: str) -> bool:
    """Whether a value is unlike words: letters and digits together, or long and of mixed case."""
    if len(value) < 6 or " " in value or not _LETTER.search(value):
        return False
    if _DIGIT.search(value):
        return True
    return len(value) >= 20 and "/" not in value and _mixed(value)


def _mixed(value: str) -> bool:
    return value not in (value.lower(), value.upper())
