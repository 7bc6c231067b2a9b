"""Turn keys: what a transcript says, independent of wrappers, call ids, cache marks and pruned tool results."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Protocol

import msgspec

from proxy.transcript import Call, ClientId, Human, Key, Message, Part, Transcript

ROOT = blake2b(b"root", digest_size=16).digest()
CLOSING = 400  # characters of an assistant text that are kept as what was asked
_SHORT_RESULT = 60  # a result up to this proves nothing: "(empty)", "ok", a stub
_PREFIX = re.compile(r"^(?:call|toolu|fc|tool|functions?|chatcmpl|msg)[-_.:]+")
_TRIM = "_-.:"
_OPENING = 8  # messages among which a client says that it has cut its history
_MESSAGES_KEPT = 20_000
_PATHS_KEPT = 128


class Reader(Protocol):
    """What lineage needs to know of a client's profile."""

    @property
    def name(self) -> str:
        """The profile's name."""

    def peel(self, message: Message, tool_names: Mapping[str, str] | None = None) -> tuple[Human, ...]:
        """Gives the person's words in a message, verbatim."""

    def is_summary(self, text: str) -> bool:
        """Whether this text is the client's own summary."""

    def is_cut(self, text: str) -> bool:
        """Whether the client says with this text that it has cut its history."""

    def is_nudge(self, text: str) -> bool:
        """Whether the client says this by itself behind a summary in the role assistant."""


class CallLike(Protocol):
    """A tool call in an answer."""

    @property
    def name(self) -> str:
        """The tool's name."""

    @property
    def arguments(self) -> str:
        """The arguments as sent."""

    @property
    def id(self) -> str:
        """The call's id."""


class Path(msgspec.Struct, frozen=True, eq=False):
    """The keys of one request, with what comparing it to others needs."""

    digests: tuple[str, ...]  # of all messages
    keys: tuple[Key, ...]
    chain: tuple[bytes, ...]  # chain[i] proves keys[: i + 1]
    strong: tuple[int, ...]  # strong call ids in keys[: i + 1]
    results: tuple[tuple[bytes, bytes], ...]  # key hash of a call, fingerprint of its result

    def grew_from(self, earlier: Path) -> bool:
        """Whether all messages of the earlier path stand, byte for byte, at the head of this one."""
        return self is earlier or self.digests[: len(earlier.digests)] == earlier.digests


class Request(msgspec.Struct, frozen=True):
    """One request as lineage sees it; made by `KeyReader.request`."""

    transcript: Transcript
    path: Path
    profile: str
    client: ClientId | None = None
    product: str = ""  # name of the client product, "" when hidden
    side: str = ""  # "", title, summary, flat, other
    retry: bool = False  # the client says that it sends this again
    notice: str = ""  # what the client tells of the history that it cut
    same: tuple[tuple[bytes, bytes], ...] = ()  # own hash and first hash of turns that were first sent in other words

    @property
    def keys(self) -> tuple[Key, ...]:
        """The turn keys, in order."""
        return self.path.keys

    @property
    def chain(self) -> tuple[bytes, ...]:
        """The chain over the keys: chain[i] proves keys[: i + 1]."""
        return self.path.chain


def hashed(*parts: bytes | str) -> bytes:
    """Gives a 16-byte hash over parts, each with its length."""
    pieces: list[bytes] = []
    for part in parts:
        data = part if isinstance(part, bytes) else part.encode("utf-8", "surrogatepass")
        pieces += (len(data).to_bytes(4, "big"), data)
    return blake2b(b"".join(pieces), digest_size=16).digest()


def normal(text: str) -> str:
    """Gives the text in NFC with each run of blanks as one blank."""
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    return " ".join(text.split())


def link(before: bytes, key: bytes) -> bytes:
    """Gives the chain node behind `before`."""
    return blake2b(before + key, digest_size=16).digest()


def strong_id(call_id: str, name: str) -> str:
    """Gives what is left of a call id that can be unique in the world, "" for one like call_0 or functions.bash:3."""
    bare = call_id.replace(name, "") if name else call_id
    bare = _PREFIX.sub("", bare.strip(_TRIM)).strip(_TRIM)
    return bare if sum(map(str.isalnum, bare)) >= 10 and len(set(bare)) >= 5 else ""


def canonical(arguments: str) -> str:
    """Gives JSON arguments with sorted keys and no blanks; other text normalised."""
    try:
        return msgspec.json.encode(msgspec.json.decode(arguments), order="sorted").decode()
    except (msgspec.DecodeError, ValueError, RecursionError):
        return normal(arguments)


def text_key(kind: str, text: str) -> bytes:
    """Gives the key hash of a human ("u") or assistant ("a") text."""
    return hashed(kind, normal(text))


def call_key(call: CallLike, message: int) -> Key:
    """Gives the key of a tool call: its name and arguments, never its id."""
    text = f"{call.name} {canonical(call.arguments)}"
    return Key("c", hashed("c", text), message, strong_id(call.id, call.name), len(text))


def assistant_key(text: str, message: int) -> Key | None:
    """Gives the key of an assistant text, None for an empty one."""
    words = normal(text)
    return Key("a", hashed("a", words), message, "", len(words), None, text.rstrip()[-CLOSING:]) if words else None


class _Read(msgspec.Struct, frozen=True):
    """What one message gives at one place."""

    place: int
    keys: tuple[Key, ...]
    results: tuple[tuple[str, bytes], ...]  # call id, fingerprint


class KeyReader:
    """Turns transcripts into requests; reads each message once and each path where it is new."""

    def __init__(self) -> None:
        self._messages: dict[tuple[str, str], _Read] = {}
        self._paths: dict[tuple[str, int, str], Path] = {}

    def renew(self) -> None:
        """Forgets how messages were read, after a profile changed; conversations that run on keep their beginning.

        Read anew, a turn of theirs could look like one that the client has edited.
        """
        self._messages.clear()
        self._paths = {name: path for name, path in self._paths.items() if any(key.kind in "ac" for key in path.keys)}

    def request(
        self,
        transcript: Transcript,
        profile: Reader,
        *,
        client: ClientId | None = None,
        product: str = "",
        side: str = "",
        retry: bool = False,
    ) -> Request:
        """Reads a transcript."""
        path, notice = self.path(transcript.messages, profile), _notice(transcript.messages, profile)
        return Request(transcript, path, profile.name, client, product, side, retry, notice)

    def path(self, messages: Sequence[Message], profile: Reader) -> Path:
        """Gives the keys and chain of these messages; what an earlier path began with is taken from it."""
        digests = tuple([message.digest for message in messages])
        known = self._longest(digests, profile.name)
        if known is not None and len(known.digests) == len(digests):
            return known
        path = self._grown(known, digests, messages, profile)
        if digests:
            if len(self._paths) >= _PATHS_KEPT:
                self._paths.pop(next(iter(self._paths)))
            self._paths[(profile.name, len(digests), digests[-1])] = path
        return path

    def _longest(self, digests: tuple[str, ...], profile: str) -> Path | None:
        for count in range(len(digests), 0, -1):
            known = self._paths.get((profile, count, digests[count - 1]))
            if known is not None and known.digests == digests[:count]:
                return known
        return None

    def _grown(
        self, known: Path | None, digests: tuple[str, ...], messages: Sequence[Message], profile: Reader
    ) -> Path:
        keys: list[Key] = []
        results: list[tuple[bytes, bytes]] = []
        start = len(known.digests) if known is not None else 0
        for place in range(start, len(messages)):
            read = self._read(messages, place, profile)
            keys += read.keys
            results += [
                (call_key(call, place).hash, mark)
                for call_id, mark in read.results
                if (call := _call_of(messages, place, call_id)) is not None
            ]
        chain, node = [], known.chain[-1] if known is not None and known.chain else ROOT
        strong, count = [], known.strong[-1] if known is not None and known.strong else 0
        for key in keys:
            node = link(node, key.hash)
            chain.append(node)
            count += bool(key.strong)
            strong.append(count)
        if known is None:
            return Path(digests, tuple(keys), tuple(chain), tuple(strong), tuple(results))
        return Path(
            digests,
            known.keys + tuple(keys),
            known.chain + tuple(chain),
            known.strong + tuple(strong),
            known.results + tuple(results),
        )

    def _read(self, messages: Sequence[Message], place: int, profile: Reader) -> _Read:
        message = messages[place]
        if message.role in ("system", "developer") or _is_nudge(messages, place, profile):
            return _Read(place, (), ())
        known = self._messages.get((profile.name, message.digest))
        if known is not None and known.place == place:
            return known
        if len(self._messages) >= _MESSAGES_KEPT:
            self._messages.clear()
        read = self._messages[(profile.name, message.digest)] = _read(messages, place, profile)
        return read


def _read(messages: Sequence[Message], place: int, profile: Reader) -> _Read:
    message = messages[place]
    results = [part for part in message.parts if part.kind == "result"]
    if message.role in ("assistant", "model"):
        return _Read(place, tuple(assistant_keys(message.parts, place)), ())
    calls = {part.call_id: _call_of(messages, place, part.call_id) for part in results}
    names = {call_id: call.name for call_id, call in calls.items() if call is not None}
    keys = [_human_key(human, place) for human in profile.peel(message, names)]
    if message.role == "user":
        keys += [
            Key("s", text_key("u", part.text), place, "", len(part.text))
            for part in message.parts
            if part.kind == "text" and profile.is_summary(part.text)
        ]
    marks = tuple((part.call_id, fingerprint(part.text)) for part in results if len(part.text) > _SHORT_RESULT)
    return _Read(place, tuple(keys), marks)


def _notice(messages: Sequence[Message], profile: Reader) -> str:
    texts = [
        part.text
        for message in messages[:_OPENING]
        if message.role == "user"
        for part in message.parts
        if part.kind == "text" and profile.is_cut(part.text)
    ]
    return "\n\n".join(texts)


def fingerprint(text: str) -> bytes:
    """Gives a hash of a result's beginning, which survives that its end is cut."""
    return hashed("r", normal(text[:400])[:160])


def _human_key(human: Human, place: int) -> Key:
    words = normal(human.text)
    return Key("u", hashed("u", words), place, "", len(words), human)


def assistant_keys(parts: Sequence[Part], place: int) -> list[Key]:
    """Gives the keys of what an assistant said, called or left sealed, in its order."""
    keys: list[Key] = []
    for part in parts:
        if part.kind == "text" and (key := assistant_key(part.text, place)) is not None:
            keys.append(key)
        elif part.kind == "call":
            keys.append(call_key(Call(part.name, part.text, part.call_id), place))
        elif part.kind == "opaque" and part.text:
            keys.append(Key("o", hashed("o", part.text), place, "", len(part.text)))
    return keys


def _call_of(messages: Sequence[Message], place: int, call_id: str) -> Call | None:
    """Gives the call that a result answers: the nearest one before it with this id."""
    for index in range(place - 1, max(-1, place - 65), -1):
        for part in messages[index].parts:
            if part.kind == "call" and part.call_id == call_id:
                return Call(part.name, part.text, part.call_id)
    return None


def _is_nudge(messages: Sequence[Message], place: int, profile: Reader) -> bool:
    message = messages[place]
    if message.role != "user" or len(message.parts) != 1 or not profile.is_nudge(message.parts[0].text):
        return False
    talk = [other for other in messages[:place] if other.role not in ("system", "developer")]
    return len(talk) == 1 and talk[0].role == "assistant"


def text_of(message: Message, key: Key) -> str:
    """Gives the text that a human, summary or assistant key stands for, "" for other kinds."""
    if key.human is not None:
        return key.human.text
    kinds: dict[str, str] = {"a": "text", "s": "text", "o": "opaque"}
    wanted = kinds.get(key.kind)
    return next((part.text for part in message.parts if part.kind == wanted and _fits(part, key)), "")


def _fits(part: Part, key: Key) -> bool:
    if part.kind == "opaque":
        return hashed("o", part.text) == key.hash
    return text_key("a" if key.kind == "a" else "u", part.text) == key.hash
