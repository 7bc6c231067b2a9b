"""The key that seals secret values: in a file of its own outside the data folder, or in the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path

from proxy.errors import StoreError

VARIABLE = "GOALKEEPER_SEAL_KEY"


def key_path(environ: Mapping[str, str]) -> Path:
    """Gives the key file's usual place: `goalkeeper/seal.key` in the user's configuration folder."""
    home = environ.get("XDG_CONFIG_HOME") or str(Path(environ.get("HOME") or "~").expanduser() / ".config")
    return Path(home) / "goalkeeper" / "seal.key"


def load_key(path: Path, environ: Mapping[str, str]) -> bytes:
    """Gives the key (32 bytes): from GOALKEEPER_SEAL_KEY, else from the file, which is made (0600) when it isn't there.

    Raises StoreError when the file can't be read, made, or holds no key.
    """
    found = read_key(path, environ)
    if found:
        return found
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(file, "w") as stream:
            stream.write(os.urandom(32).hex() + "\n")
        try:
            os.link(fresh, path)  # fails when another process was quicker: its key counts
        except FileExistsError:
            pass
        finally:
            fresh.unlink()
    except OSError as error:
        raise StoreError(f"{path}: the key for secret values can't be made: {error}") from error
    return read_key(path, environ) or b""


def read_key(path: Path, environ: Mapping[str, str]) -> bytes | None:
    """Gives the key, None when there is none. Raises StoreError when the file can't be read or holds no key."""
    words = environ.get(VARIABLE)
    if words:
        return blake2b(words.encode("utf-8", "surrogateescape"), digest_size=32).digest()
    try:
        key = bytes.fromhex(path.read_text("ascii"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise StoreError(f"{path}: not a readable key file: {error}") from error
    if len(key) != 32:
        raise StoreError(f"{path}: the key must be 64 hex digits")
    return key
