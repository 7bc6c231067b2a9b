"""Counts tokens with the o200k vocabulary that ships in litellm's folder, without importing litellm."""

from __future__ import annotations

import functools
import importlib.util
import os
from pathlib import Path

import tiktoken


@functools.cache
def _encoding() -> tiktoken.Encoding:
    spec = importlib.util.find_spec("litellm")
    for folder in (spec.submodule_search_locations if spec is not None else None) or ():
        os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(Path(folder) / "litellm_core_utils" / "tokenizers"))
    return tiktoken.get_encoding("o200k_base")


def tokens_of(text: str) -> int:
    """Gives the number of tokens of a text; special tokens in it count as plain text."""
    return len(_encoding().encode(text, disallowed_special=()))
