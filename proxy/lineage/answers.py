"""Watching the answers: our own output, found again in a body, is what proves where it belongs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from proxy.lineage.branch import Branch, later
from proxy.lineage.emissions import LEAST_ORDINARY, SHORT, lines_of
from proxy.lineage.forest import Forest
from proxy.lineage.index import strong_hash
from proxy.lineage.keys import CallLike, assistant_key, assistant_keys, call_key, hashed, link, text_key
from proxy.lineage.link import Link
from proxy.lineage.records import AnswerKey, Changes, EmissionRecord, Hint, Mark, Snapshot
from proxy.transcript import Key, Part

_LEAST_CALL = 8  # characters of name and arguments from which a call is evidence
_DEPTH = 3  # levels of a call's arguments that are searched for a task
_HINTED = 12  # longest lines of an ordinary answer by which a store finds it again


class Answers:
    """Takes the model's answers into the forest."""

    def __init__(self, forest: Forest, new_id: Callable[[], str]) -> None:
        self._forest = forest
        self._new_id = new_id

    def take(
        self, linked: Link, text: str, calls: Sequence[CallLike], parts: Sequence[Part], *, complete: bool
    ) -> Changes:
        """Records an answer; what is incomplete, or of a side call, leaves no trace."""
        if not complete or linked.relation == "side":
            return Changes()
        if linked.relation == "summary":
            return self._summary(linked, _sealed(parts) or text)
        branch = self._forest.branches.get(linked.branch or "")
        return self._turn(branch, linked, text, calls, parts) if branch is not None else Changes()

    def _turn(
        self, branch: Branch, linked: Link, text: str, calls: Sequence[CallLike], parts: Sequence[Part]
    ) -> Changes:
        place = (linked.keys[-1].message + 1) if linked.keys else 0
        said = assistant_key(text, place)
        keys = [key for key in (said, *(call_key(call, place) for call in calls)) if key is not None]
        keys = assistant_keys(parts, place) if parts else keys
        marks = self._emitted(branch, keys)
        prompts = self._prompts(branch, calls)
        if branch.path is not None and linked.path is not None and branch.path.digests == linked.path.digests:
            answer = tuple(AnswerKey(key.kind, key.hash, key.strong, key.length, key.closing) for key in keys)
            hints = self._forest.append(branch, keys, answer)
        else:
            hints = self._beside(branch, linked, keys)
        sealed = _sealed(parts)
        if sealed:
            branch.pending = True  # the client may go on without what the server has compacted
            hints.append(hashed("o", sealed))
        emission = (
            self._compaction(sealed, linked, [branch])
            if sealed
            else self._emission(text, (branch,), least=LEAST_ORDINARY)
        )
        if emission is not None:
            longest = sorted(emission.lines, key=lambda line: -line[1])[:_HINTED]
            hints += [line for line, _ in longest]
        return Changes(
            state=branch.state(),
            marks=(*marks, *prompts),
            hints=tuple(Hint(value, branch.id) for value in (*hints, *(mark.hash for mark in prompts))),
            emission=emission,
        )

    def _beside(self, branch: Branch, linked: Link, keys: Sequence[Key]) -> list[bytes]:
        """The branch went on while this answer was made: its place stays known all the same."""
        node, hints = linked.chain[-1] if linked.chain else b"", []
        for key in keys:
            node = link(node, key.hash)
            self._forest.index.chain.add(node, branch)
            branch.nodes.add(node)
            hints.append(node)
            if key.strong:
                branch.strong.add(key.strong)
                self._forest.index.strong.add(strong_hash(key.strong), branch)
                hints.append(strong_hash(key.strong))
        return hints

    @staticmethod
    def _emitted(branch: Branch, keys: Sequence[Key]) -> list[Mark]:
        proving = [key.hash for key in keys if key.length >= (SHORT if key.kind == "a" else _LEAST_CALL)]
        new = [value for value in dict.fromkeys(proving) if value not in branch.emitted]
        branch.emitted.update(new)
        return [Mark("emitted", value) for value in new]

    def _prompts(self, branch: Branch, calls: Sequence[CallLike]) -> list[Mark]:
        new = []
        for call in calls:
            for words in _strings(call.arguments):
                value = text_key("u", words)
                if value not in branch.prompts:
                    branch.prompts.add(value)
                    new.append(Mark("prompt", value))
                self._forest.index.prompts.add(value, branch)
        return new

    def _emission(self, text: str, branches: Sequence[Branch], *, least: int) -> EmissionRecord | None:
        lines = lines_of(text)
        total = sum(length for _, length in lines)
        if total < least:
            return None
        emission = EmissionRecord(self._new_id(), tuple(branch.id for branch in branches), lines, b"", total)
        self._forest.emissions.add(emission)
        return emission

    def _summary(self, linked: Link, text: str) -> Changes:
        branches = [branch for name in linked.sources if (branch := self._forest.branches.get(name)) is not None]
        if not text or not branches:
            return Changes()
        emission = self._compaction(text, linked, branches)
        for branch in branches:
            branch.pending = True
        values = (*(line for line, _ in emission.lines), emission.whole)
        return Changes(
            states=tuple(branch.state() for branch in branches),
            hints=tuple(Hint(value, branch.id) for branch in branches for value in values),
            emission=emission,
        )

    def _compaction(self, text: str, linked: Link, branches: Sequence[Branch]) -> EmissionRecord:
        """Remembers a summary, or a sealed item, with the human words that the client may leave out for it."""
        lines = lines_of(text)
        emission = EmissionRecord(
            self._new_id(),
            tuple(branch.id for branch in branches),
            lines,
            hashed("o", text),
            sum(length for _, length in lines),
            summary=True,
            snapshots=tuple(self._snapshot(branch, linked) for branch in branches),
        )
        self._forest.emissions.add(emission)
        return emission

    @staticmethod
    def _snapshot(branch: Branch, linked: Link) -> Snapshot:
        if branch.sub:
            return Snapshot(branch.id, ())
        turns = branch.visible() if linked.side == "flat" else later(branch.base, linked.humans)
        return Snapshot(branch.id, turns)


def _sealed(parts: Sequence[Part]) -> str:
    """Gives what the server compacted, sealed, "" when it didn't."""
    return next((part.text for part in reversed(parts) if part.name == "compaction" and part.kind == "opaque"), "")


def _strings(arguments: str) -> list[str]:
    """Gives the long texts among a call's arguments."""
    try:
        value = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return []
    return list(_long(value, _DEPTH))


def _long(value: object, depth: int) -> list[str]:
    if isinstance(value, str):
        return [value] if len(value) >= SHORT else []
    if depth == 0:
        return []
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [words for item in inner for words in _long(item, depth - 1)]
