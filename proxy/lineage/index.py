"""Where a hash leads: bounded posting lists, newest last."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Generic, TypeVar

from proxy.lineage.branch import Branch
from proxy.lineage.keys import hashed
from proxy.transcript import Key

PLACES = 32  # branches kept for one hash: openings that everybody uses stay cheap
SHORT = 24
T = TypeVar("T", bound=Hashable)


class Bounded(Generic[T]):
    """Maps a hash to its newest few values."""

    def __init__(self, bound: int) -> None:
        self._bound = bound
        # Nearly every hash leads to one value, which needs no list of its own.
        self._single: dict[bytes, T] = {}
        self._lists: dict[bytes, dict[T, None]] = {}

    def add(self, key: bytes, value: T) -> None:
        """Puts the value last; the oldest gives way."""
        values = self._lists.get(key)
        if values is None:
            first = self._single.setdefault(key, value)
            if first == value:
                return
            del self._single[key]
            values = self._lists[key] = {first: None}
        values.pop(value, None)
        values[value] = None
        if len(values) > self._bound:
            del values[next(iter(values))]

    def get(self, key: bytes) -> Sequence[T]:
        """Gives the values of a hash, oldest first."""
        values = self._lists.get(key)
        if values is not None:
            return tuple(values)
        value = self._single.get(key)
        return () if value is None else (value,)

    def drop(self, key: bytes, value: T) -> None:
        """Takes a value out."""
        values = self._lists.get(key)
        if values is not None:
            values.pop(value, None)
            if not values:
                del self._lists[key]
        elif self._single.get(key) == value:
            del self._single[key]


def pair_hash(first: Key, second: Key) -> bytes:
    """Gives the hash of two neighbouring keys."""
    return hashed("p", first.hash, second.hash)


def strong_hash(strong: str) -> bytes:
    """Gives the hash of a strong call id."""
    return hashed("i", strong)


def client_hash(client: str) -> bytes:
    """Gives the hash of a client's session id."""
    return hashed("n", client)


class Index:
    """All ways from a request to the branches of one engine."""

    def __init__(self) -> None:
        self.chain: Bounded[Branch] = Bounded(PLACES)
        self.strong: Bounded[Branch] = Bounded(PLACES)
        self.pairs: Bounded[Branch] = Bounded(PLACES)
        self.texts: Bounded[Branch] = Bounded(4 * PLACES)
        self.prompts: Bounded[Branch] = Bounded(PLACES)

    def record(self, branch: Branch, keys: Sequence[Key], chain: Sequence[bytes], start: int) -> list[bytes]:
        """Makes keys from `start` on lead to the branch; gives the hashes that a store must remember."""
        hints = []
        for place in range(start, len(keys)):
            key = keys[place]
            self.chain.add(chain[place], branch)
            hints.append(chain[place])
            if key.strong:
                branch.strong.add(key.strong)
                self.strong.add(strong_hash(key.strong), branch)
                hints.append(strong_hash(key.strong))
            if key.length >= SHORT and key.kind != "c":
                self.texts.add(key.hash, branch)
            if place and keys[place - 1].length + key.length >= SHORT:
                pair = pair_hash(keys[place - 1], key)
                self.pairs.add(pair, branch)
                hints.append(pair)
        branch.nodes.update(chain[start:])
        return hints

    def forget(self, branch: Branch) -> None:
        """Takes a branch out of all lists."""
        for node in branch.nodes:
            self.chain.drop(node, branch)
        for strong in branch.strong:
            self.strong.drop(strong_hash(strong), branch)
        for prompt in branch.prompts:
            self.prompts.drop(prompt, branch)
        for place, key in enumerate(branch.keys):
            self.texts.drop(key.hash, branch)
            if place:
                self.pairs.drop(pair_hash(branch.keys[place - 1], key), branch)
