"""The same turn in other words: a client that sends its newest turn with format rules, and later without them."""

from __future__ import annotations

from msgspec.structs import replace

from proxy.lineage.branch import Branch
from proxy.lineage.forest import Forest
from proxy.lineage.keys import ROOT, Path, Request, link, normal
from proxy.transcript import Key

_LEAST = 24  # characters that two texts must share


def as_first_said(request: Request, forest: Forest) -> Request:
    """Gives the request with such turns under the key that they were first known by.

    Two texts are one turn when one is the beginning of the other and the same answer follows.
    """
    for _ in range(len(request.keys)):
        place, first = _differing(request, forest)
        if first is None:
            return request
        renamed = (request.keys[place].hash, first.hash)
        request = replace(request, path=_with(request.path, place, first), same=(*request.same, renamed))
    return request


def _differing(request: Request, forest: Forest) -> tuple[int, Key | None]:
    chain, keys = request.chain, request.keys
    for place in range(len(chain), 0, -1):
        holders = forest.index.chain.get(chain[place - 1])
        if holders:
            if place + 1 < len(keys) and keys[place].kind == "u":
                found = (known for branch in holders if (known := _same_turn(branch, keys, place)) is not None)
                return place, next(found, None)
            break
    return 0, None


def _same_turn(branch: Branch, keys: tuple[Key, ...], place: int) -> Key | None:
    if len(branch.keys) < place + 2 or branch.keys[place + 1].hash != keys[place + 1].hash:
        return None
    known = branch.keys[place]
    if known.kind != "u" or known.human is None or keys[place].human is None or known.hash == keys[place].hash:
        return None
    one, other = sorted((normal(known.human.text), normal(_words(keys[place]))), key=len)
    return known if len(one) >= _LEAST and other.startswith(one) else None


def _words(key: Key) -> str:
    return key.human.text if key.human is not None else ""


def _with(path: Path, place: int, first: Key) -> Path:
    keys = (*path.keys[:place], replace(path.keys[place], hash=first.hash), *path.keys[place + 1 :])
    chain, node = list(path.chain[:place]), path.chain[place - 1] if place else ROOT
    for key in keys[place:]:
        node = link(node, key.hash)
        chain.append(node)
    return replace(path, keys=keys, chain=tuple(chain))
