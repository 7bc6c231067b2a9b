"""Under which hashes a store is asked for branches."""

from __future__ import annotations

from itertools import pairwise

from proxy.lineage.emissions import lines_of
from proxy.lineage.index import client_hash, pair_hash, strong_hash
from proxy.lineage.keys import Request, hashed, text_of


def hashes_of(request: Request) -> tuple[bytes, ...]:
    """Gives all hashes under which a branch that matters to a request may be stored, the surest first."""
    found = dict.fromkeys(reversed(request.chain))
    keys = request.keys
    found.update(dict.fromkeys(strong_hash(key.strong) for key in reversed(keys) if key.strong))
    found.update(dict.fromkeys(pair_hash(first, second) for first, second in pairwise(keys)))
    if keys:
        found[keys[-1].hash] = None
    for key in keys:
        text = "" if key.kind == "c" else text_of(request.transcript.messages[key.message], key)
        found.update(dict.fromkeys(line for line, _ in lines_of(text)))
        if key.kind == "o":
            found[hashed("o", text)] = None
    if request.client is not None:
        ids = (request.client.id, request.client.parent)
        found.update(dict.fromkeys(client_hash(name) for name in ids if name))
    return tuple(found)
