"""The branches that are in memory: engines that link to them, and what each carries from request to request."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Sequence

import msgspec

from proxy.clients import Profiles
from proxy.compaction.draft import Memory
from proxy.compaction.insertion import Insertion
from proxy.dialects.base import Dialect
from proxy.lineage import Engine, Link
from proxy.lineage.keys import KeyReader, Request
from proxy.pipeline.case import BranchState, Scope
from proxy.store.ids import new_ulid
from proxy.store.rows import Loaded
from proxy.store.sqlite import Store
from proxy.transcript import Message

_BRANCHES = 2_000  # branch states kept in memory; the store has them all


class Branches:
    """Finds branches in memory and in the store; an engine for each scope."""

    def __init__(self, store: Store, dialect: Dialect, reader: KeyReader) -> None:
        self._store = store
        self._dialect = dialect
        self._reader = reader
        self._engines: dict[Scope, Engine] = {}
        self._states: OrderedDict[str, BranchState] = OrderedDict()
        self._mark = store.edits.value
        self._forgotten = store.forgotten()[0]

    def get(self, branch: str) -> BranchState | None:
        """Gives the state of a branch that is in memory."""
        return self._states.get(branch)

    def forget(self) -> bool:
        """Lets go of what a person had forgotten meanwhile, and tells whether there was anything."""
        mark = self._store.edits.value
        if self._mark == mark:
            return False
        self._mark = mark
        self._forgotten, names = self._store.forgotten(self._forgotten)
        if not names:
            return False
        for engine in self._engines.values():
            for branch in engine.forget(names):
                self._states.pop(branch, None)
        for name in names:
            self._states.pop(name, None)
        return True

    def engine(self, scope: Scope) -> Engine:
        """Gives the engine of a scope."""
        engine = self._engines.get(scope)
        if engine is None:
            engine = self._engines[scope] = Engine(new_ulid, self._reader)
        return engine

    def recall(self, scope: Scope, request: Request, profiles: Profiles) -> None:
        """Takes older branches that may matter to this request from the store into the engine."""
        engine = self.engine(scope)
        hashes = engine.lookups(request)
        for loaded in self._store.load_branches(scope.tenant, scope.namespace, hashes) if hashes else ():
            record = loaded.stored.record
            if engine.knows(record.id) or record.dialect != self._dialect.name:
                continue
            messages = self._messages(scope, loaded)
            if messages is None:
                continue
            engine.restore(loaded.stored, messages, profiles.named(record.profile))
            refused = self._store.quarantined(record.id)
            good = tuple(one.id for one in loaded.insertions if one.id not in refused)
            strict = alternating(loaded.insertions, refused, good)
            memory = Memory(insertions=loaded.insertions, refused=refused, strict=strict)
            self._states[record.id] = BranchState(memory, stored=messages, good=good)

    def _messages(self, scope: Scope, loaded: Loaded) -> tuple[Message, ...] | None:
        raw = self._store.load_messages(scope.tenant, set(loaded.path))
        if any(digest not in raw for digest in loaded.path):
            return None  # retention has taken a part of it
        return tuple(self._dialect.message(raw[digest]) for digest in loaded.path)

    def state(self, link: Link) -> BranchState:
        """Gives the branch's state; a new branch begins with what still stands of its parent's insertions."""
        branch = link.branch or ""
        state = self._states.get(branch)
        if state is None:
            parent = self._states.get(link.parent_branch or "")
            state = self._states[branch] = BranchState()
            if parent is not None and link.relation == "compacted":
                told = [one for one in parent.memory.insertions if one.reason == "recall"]
                usable = [one for one in told if one.id not in parent.memory.refused]
                state.memory = Memory(tuple(msgspec.structs.replace(one, branch=branch) for one in usable))
            elif parent is not None and link.relation in ("rewound", "edited", "forked", "resend"):
                anchors = {node.hex() for node in link.chain} | {""}
                memory = parent.memory
                inherited = tuple(
                    msgspec.structs.replace(one, branch=branch)
                    for one in memory.insertions
                    if one.anchor in anchors and one.id not in memory.refused
                )
                state.memory = Memory(insertions=inherited, refused=memory.refused, strict=memory.strict)
                state.good = tuple(one.id for one in inherited if one.id in parent.good)
        self._states.move_to_end(branch)
        if len(self._states) > _BRANCHES:
            self._states.popitem(last=False)
        return state


def alternating(insertions: Sequence[Insertion], refused: Collection[str], good: Collection[str]) -> bool:
    """Whether an upstream that refused insertions wants roles to alternate.

    It has taken none that is a message of its own: one that has minds their text, not their role.
    """
    own = {one.id for one in insertions if one.placement == "message"}
    return not own.isdisjoint(refused) and own.isdisjoint(good)
