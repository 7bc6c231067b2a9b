"""Secret values in text: finds them by their shape, masks them, and seals them so that only the key's owner reads them.

The sentence around a value stays. The same functions work on plain text and on raw JSON: no match crosses an escape, so
masked JSON stays JSON and comes back byte for byte.
"""

from __future__ import annotations

import os
import re
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from typing import NamedTuple

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from proxy.secret_shapes import Secret, people_in, shapes_in

Lookup = Callable[[str], tuple[bytes, bytes] | None]  # token → (nonce, sealed)

_MARK = "[secret:"
_TOKEN = re.compile(r"\[secret:(?::|([a-z_]{1,24}):([0-9a-f]{16})\])")
_WHOLE = re.compile(r'"\[secret:json:([0-9a-f]{16})\]"')
_KNOWN_LIMIT = 64
_AGAIN_LIMIT = 64  # values of one text that are looked for once more in all of it: each look costs


class Sealed(NamedTuple):
    """One encrypted value; the token is the hash that stands in its place."""

    token: str
    nonce: bytes
    sealed: bytes


def find(text: str, known: Iterable[str] = (), *, people: bool = False) -> list[Secret]:
    """Gives the secret values of a text in order, none overlapping; `known` values count wherever they stand.

    With `people` e-mail addresses and phone numbers count too.
    """
    found = shapes_in(text)
    if people:
        found += people_in(text)
    again: dict[str, str] = {}
    for secret in found:
        if len(again) < _AGAIN_LIMIT and telling(secret.value):
            again.setdefault(secret.value, secret.kind)
    for value in known:
        if value in text:
            again.setdefault(value, "known")
    for value, kind in again.items():
        found.extend(_occurrences(text, value, kind))
    return _disjoint(text, found) if found else found


def telling(value: str) -> bool:
    """Whether a value is so unlike a word that it is a secret wherever it stands."""
    return len(value) >= 8 and any(c.isdigit() for c in value) and any(c.isalpha() for c in value)


def _occurrences(text: str, value: str, kind: str) -> Iterator[Secret]:
    at = text.find(value)
    while at >= 0:
        yield Secret(at, at + len(value), kind, value)
        at = text.find(value, at + len(value))


def _disjoint(text: str, found: list[Secret]) -> list[Secret]:
    """Keeps the first and longest of what overlaps; what several cover together is hidden as one."""
    kept: list[tuple[int, int, str]] = []
    for secret in sorted(found, key=lambda secret: (secret.start, -secret.end)):
        if not kept or secret.start >= kept[-1][1]:
            kept.append((secret.start, secret.end, secret.kind))
        elif secret.end > kept[-1][1]:
            kept[-1] = (kept[-1][0], secret.end, kept[-1][2])
    return [Secret(start, end, kind, text[start:end]) for start, end, kind in kept]


class Sealer:
    """Replaces secret values by tokens, and back.

    Without a key values are masked for good; switched off, text passes as it is. With `people` e-mail addresses and
    phone numbers are sealed too.
    """

    def __init__(self, key: bytes | None, *, enabled: bool = True, people: bool = False) -> None:
        self.enabled = enabled
        self._people = people
        self._hash_key = blake2b(key or os.urandom(32), person=b"token", digest_size=32).digest()
        self._cipher = AESGCM(blake2b(key, person=b"seal", digest_size=32).digest()) if key else None
        self._known: dict[str, None] = {}

    def token_of(self, value: str) -> str:
        """Gives the keyed hash that stands for a value: 16 hex digits, the same for every occurrence."""
        return blake2b(_bytes(value), key=self._hash_key, digest_size=8).hexdigest()

    def mask(self, text: str) -> str:
        """Gives the text with `[secret:KIND:HASH]` for each value: for logs and exports, not to be reversed."""
        return self._replace(text, self._found(text))[0] if self.enabled else text

    def seal(self, text: str) -> tuple[str, list[Sealed]]:
        """Gives the masked text and the encrypted values; `unseal` turns it back, character for character."""
        if not self.enabled:
            return text.replace(_MARK, _MARK + ":") if _MARK in text else text, []
        found = self._found(text)
        if not found and _MARK not in text:
            return text, []
        return self._replace(text, found)

    def leaves(self, text: str) -> bool:
        """Whether a text is stored as it is."""
        return not text or (_MARK not in text and not (self.enabled and self._found(text)))

    def seal_json(self, text: str) -> tuple[str, list[Sealed]]:
        """Seals JSON text so that the result is JSON; a text that can't be masked piecewise is sealed whole."""
        masked, sealed = self.seal(text)
        if masked is text or not _TOKEN.search(masked):
            return masked, sealed
        try:
            msgspec.json.decode(_bytes(masked))
        except (msgspec.DecodeError, UnicodeDecodeError):
            token = self.token_of(text)
            return f'"{_MARK}json:{token}]"', self._encrypt({token: text})
        return masked, sealed

    def unseal(self, masked: str, lookup: Lookup) -> str:
        """Gives the text that was sealed; a token whose value can't be had stays as it is."""
        if _MARK not in masked:
            return masked
        whole = _WHOLE.fullmatch(masked)
        if whole:
            value = self._decrypt(whole[1], lookup)
            return masked if value is None else value

        def original(match: re.Match[str]) -> str:
            if match[2] is None:
                return _MARK
            value = self._decrypt(match[2], lookup)
            return match[0] if value is None else value

        return _TOKEN.sub(original, masked)

    def opened(self, token: str, nonce: bytes, sealed: bytes) -> str | None:
        """Gives a sealed value, None without its key."""
        return self._decrypt(token, lambda _: (nonce, sealed))

    def _found(self, text: str) -> list[Secret]:
        return find(text, tuple(self._known), people=self._people)

    def _replace(self, text: str, found: list[Secret]) -> tuple[str, list[Sealed]]:
        pieces, values, at = [], {}, 0
        for secret in found:
            token = self.token_of(secret.value)
            values[token] = secret.value
            pieces.append(text[at : secret.start].replace(_MARK, _MARK + ":"))
            pieces.append(f"{_MARK}{secret.kind}:{token}]")
            at = secret.end
            self._remember(secret.value)
            if secret.kind == "authorization":
                self._remember(_basic_password(secret.value))
        pieces.append(text[at:].replace(_MARK, _MARK + ":"))
        return "".join(pieces), self._encrypt(values)

    def _remember(self, value: str) -> None:
        if telling(value) and len(value) <= 200 and value not in self._known:
            if len(self._known) >= _KNOWN_LIMIT:
                self._known.pop(next(iter(self._known)), None)  # another thread may have been quicker
            self._known[value] = None

    def _encrypt(self, values: dict[str, str]) -> list[Sealed]:
        if self._cipher is None:
            return []
        sealed = []
        for token, value in values.items():
            nonce = os.urandom(12)
            sealed.append(Sealed(token, nonce, self._cipher.encrypt(nonce, _bytes(value), token.encode())))
        return sealed

    def _decrypt(self, token: str, lookup: Lookup) -> str | None:
        stored = lookup(token) if self._cipher else None
        if stored is None or self._cipher is None:
            return None
        try:
            return self._cipher.decrypt(stored[0], stored[1], token.encode()).decode("utf-8", "surrogatepass")
        except InvalidTag:  # sealed under another key
            return None


def _basic_password(value: str) -> str:
    """Gives the password in the credentials of Basic authorization, "" when it isn't that."""
    try:
        return b64decode(value, validate=True).decode("ascii").partition(":")[2]
    except ValueError:
        return ""


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
