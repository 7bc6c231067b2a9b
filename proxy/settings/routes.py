"""The keys of `routes`: names of models, or paths of the API, and which requests each of them takes."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

API_ROOTS = ("/v1/", "/v1beta/")
CHAT_PATH = "/v1/chat/completions"
_WITHOUT_SLASH = tuple(root[1:] for root in API_ROOTS)


def is_path(key: str) -> bool:
    """Whether a key names a path of the API, and not models."""
    return f"{key}/".startswith(API_ROOTS)


def checked_key(key: str) -> str:
    """Gives a key as it is. Raises ValueError for what looks like a path and can't be one."""
    if key.startswith(_WITHOUT_SLASH):
        raise ValueError(f"a path begins with a slash, did you mean '/{key}'?")
    if not is_path(key):
        if key.startswith("/"):
            raise ValueError(
                f"a path begins with /v1/ or /v1beta/, did you mean '/v1{key}'? "
                f"A model whose name begins with a slash is written '[/]{key[1:]}'"
            )
    elif "?" in key:
        raise ValueError("a path is compared without its query: leave out '?' and what follows")
    return key


def takes(key: str, model: str, path: str) -> bool:
    """Whether the route under a key takes a request: by its path (what lies below it too), or by its model."""
    if not is_path(key):
        return fnmatchcase(model, key)
    asked, key = path.partition("?")[0].rstrip("/"), key.rstrip("/")
    return fnmatchcase(asked, key) or fnmatchcase(asked, f"{key}/*")


def hidden(keys: Iterable[str]) -> list[tuple[str, str]]:
    """Gives the keys that no request ever reaches, each with the earlier one that takes all of them."""
    found: list[tuple[str, str]] = []
    earlier: list[str] = []
    for key in keys:
        cover = next((one for one in earlier if _covers(one, key)), None)
        if cover is not None:
            found.append((key, cover))
        earlier.append(key)
    return found


def _covers(earlier: str, later: str) -> bool:
    """Whether a key surely takes all that a later one would; patterns with more than `*` are given the benefit."""
    if set(earlier) & set("?[") or "[" in later:
        return False
    if earlier == "*":
        return True
    if is_path(earlier) and not is_path(later):
        return earlier.rstrip("/*") == "/v1" and later != "*"
    return is_path(earlier) == is_path(later) and takes(earlier, later, later)
