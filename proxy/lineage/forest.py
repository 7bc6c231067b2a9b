"""All branches of one engine: how they grow, how they are found, and how they are forgotten."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import msgspec
from msgspec.structs import replace

from proxy.lineage.branch import Branch, Proof, Session, System, numbered, turns_of, without
from proxy.lineage.cuts import named
from proxy.lineage.emissions import Emissions
from proxy.lineage.index import Index, client_hash
from proxy.lineage.keys import ROOT, Path, Request, link
from proxy.lineage.records import AnswerKey, Changes, Hint, Mark, StoredBranch
from proxy.lineage.search import prove
from proxy.transcript import ClientId, Key, Message

SUB = b"sub"
KEYS_KEPT = 40_000  # keys of all branches together: about 35 MB


class Scope(msgspec.Struct, frozen=True):
    """What a client's session id stands for: a session, or one sub-agent in it."""

    session: Session
    sub: bool = False


class Forest:
    """Holds branches, newest used last, and the ways to them."""

    def __init__(self, *, keep: int) -> None:
        self.branches: dict[str, Branch] = {}
        self.clients: dict[bytes, Scope] = {}
        self.index = Index()
        self.emissions = Emissions()
        self._sessions: dict[str, Session] = {}
        self._keep = keep
        self._held = 0  # keys of all branches
        self._now = 0

    def tick(self) -> None:
        """Moves the time on by one request."""
        self._now += 1

    def touch(self, branch: Branch) -> None:
        """Notes that a branch is in use."""
        branch.used = self._now
        self.branches.pop(branch.id, None)
        self.branches[branch.id] = branch

    def within(self, client: ClientId, fits: Callable[[Branch], bool]) -> list[Branch]:
        """Gives the branches that a client's id may mean."""
        scope = self.clients.get(client_hash(client.id))
        return [branch for branch in scope.session.branches if fits(branch)] if scope is not None else []

    # --- growth ------------------------------------------------------------------------------------------------------

    def grow(self, branch: Branch, request: Request, system: System) -> Changes:
        """Makes the request the newest of its branch."""
        self.touch(branch)
        changed = branch.record.tools != request.transcript.tools or not branch.system.akin(system)
        if changed:
            branch.record = msgspec.structs.replace(
                branch.record, tools=request.transcript.tools, system=request.transcript.system
            )
        marks = [Mark("same", own, first) for own, first in request.same if own not in branch.same]
        branch.same.update(request.same)
        branch.system = system
        hints = self._enter(branch, request.path, request.transcript.messages)
        return Changes(
            branch=branch.record if changed else None,
            state=branch.state(),
            marks=tuple(marks),
            hints=tuple(Hint(value, branch.id) for value in hints),
        )

    def _enter(self, branch: Branch, path: Path, messages: Sequence[Message]) -> list[bytes]:
        grown = branch.path is not None and path.grew_from(branch.path)
        held = len(branch.spoken) if grown else 0
        shared = branch.shared(path.chain)
        hints = self.index.record(branch, path.keys, path.chain, shared)
        branch.spoken = branch.spoken[:held] + named(path.keys[held:], branch.summaries)
        later = (place for place in range(held, len(branch.spoken)) if branch.spoken[place].kind == "s")
        branch.summary_at = (*(branch.summary_at if grown else ()), *later)
        fresh = shared if branch.keys else len(branch.numbers)
        known = branch.numbers[:fresh]
        if fresh < len(branch.numbers):
            branch.highest = max(branch.record.offset, *known, 0)
        branch.numbers = numbered(branch.spoken, known, branch.highest)
        branch.highest = max(branch.highest, max(branch.numbers[fresh:], default=0))
        if branch.sub:
            branch.humans = ()
        else:
            turns = turns_of(branch.spoken, branch.numbers, messages, held)
            branch.humans = branch.humans + turns if grown else turns
        if branch.proof.seen > shared:
            branch.proof = branch.settled.copy() if branch.settled.seen <= shared else Proof()
        self._held += len(path.keys) - len(branch.keys)
        branch.keys, branch.chain, branch.path = path.keys, path.chain, path
        branch.requested, branch.answered, branch.pending, branch.answer = len(path.keys), False, False, ()
        branch.left = without(branch.left if grown else branch.base, branch.spoken[held:])
        prove(branch, branch.proof, branch.keys)
        branch.settled = branch.proof.copy()
        self._make_room()
        return hints

    def append(self, branch: Branch, keys: Sequence[Key], answer: tuple[AnswerKey, ...]) -> list[bytes]:
        """Puts an answer behind the branch's newest request."""
        request = branch.requested
        if len(branch.keys) > request:  # the model was asked again: this answer takes the other's place
            branch.highest = max(branch.record.offset, *branch.numbers[:request], 0)
        chain, node = list(branch.chain[:request]), branch.chain[request - 1] if request else ROOT
        for key in keys:
            node = link(node, key.hash)
            chain.append(node)
        self._held += len(chain) - len(branch.keys)
        branch.keys, branch.chain = (*branch.keys[:request], *keys), tuple(chain)
        branch.numbers = numbered(branch.keys, branch.numbers[:request], branch.highest)
        branch.highest = max(branch.highest, *branch.numbers[request:]) if keys else branch.highest
        branch.answered, branch.answer = True, answer
        if branch.proof.seen > request:
            branch.proof = branch.settled.copy() if branch.settled.seen <= request else Proof()
        prove(branch, branch.proof, branch.keys)
        return self.index.record(branch, branch.keys, branch.chain, request)

    # --- memory ------------------------------------------------------------------------------------------------------

    def replant(self, stored: StoredBranch, path: Path, messages: Sequence[Message], system: System) -> None:
        """Takes a branch back from a store."""
        record, state = stored.record, stored.state
        branch = Branch(record, self.session(record.session), system)
        for mark in stored.marks:
            self._recall(branch, mark)
        path = _renamed(path, branch.same)
        branch.numbers, branch.highest = record.numbers[: len(path.keys)], record.offset
        self._enter(branch, path, messages)
        if state.answer:
            place = len(messages)
            keys = [Key(a.kind, a.hash, place, a.strong, a.length, None, a.text) for a in state.answer]
            self.append(branch, keys, state.answer)
        branch.requested, branch.answered, branch.pending = state.requested, state.answered, state.pending
        for emission in stored.emissions:
            self.emissions.add(emission)
        self.add(branch)
        branch.used = state.used
        self._now = max(self._now, state.used)

    def _recall(self, branch: Branch, mark: Mark) -> None:
        if mark.kind == "emitted":
            branch.emitted.add(mark.hash)
        elif mark.kind == "summary":
            branch.summaries.add(mark.hash)
        elif mark.kind == "same":
            branch.same[mark.hash] = mark.other
        elif mark.kind == "prompt":
            branch.prompts.add(mark.hash)
            self.index.prompts.add(mark.hash, branch)
        else:
            self.clients.setdefault(mark.hash, Scope(branch.session, sub=mark.other == SUB))

    def session(self, name: str) -> Session:
        """Gives the session of this id, a new one when it isn't in memory."""
        return self._sessions.setdefault(name, Session(name))

    def add(self, branch: Branch) -> None:
        """Takes a branch in; the least recently used one gives way."""
        branch.session.branches.append(branch)
        self.touch(branch)

    def forget(self, names: Collection[str]) -> list[str]:
        """Takes out the branches of these ids, or of sessions of these ids, and gives the branches' ids."""
        gone = [one for one in self.branches.values() if one.id in names or one.session.id in names]
        for branch in gone:
            del self.branches[branch.id]
            self._drop(branch)
        ids = [branch.id for branch in gone]
        self.emissions.forget({*names, *ids})
        return ids

    def _make_room(self) -> None:
        while len(self.branches) > self._keep or (self._held > KEYS_KEPT and len(self.branches) > 1):
            self._drop(self.branches.pop(next(iter(self.branches))))

    def _drop(self, branch: Branch) -> None:
        branch.alive = False
        self._held -= len(branch.keys)
        self.index.forget(branch)
        branch.session.branches.remove(branch)
        if not branch.session.branches:
            del self._sessions[branch.session.id]
            self.clients = {name: scope for name, scope in self.clients.items() if scope.session is not branch.session}


def _renamed(path: Path, same: dict[bytes, bytes]) -> Path:
    """Gives the path with turns under the key they were first known by."""
    if not any(key.hash in same for key in path.keys):
        return path
    keys = tuple(replace(key, hash=same.get(key.hash, key.hash)) for key in path.keys)
    chain, node = [], ROOT
    for key in keys:
        node = link(node, key.hash)
        chain.append(node)
    return replace(path, keys=keys, chain=tuple(chain))
