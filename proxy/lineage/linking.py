"""From evidence to a link: a request goes on in a branch, or one begins for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
from msgspec.structs import replace

from proxy.lineage.branch import Branch, Session, System, numbered, turns_of, union, without
from proxy.lineage.cuts import base_behind, named, summaries_in
from proxy.lineage.forest import SUB, Forest, Scope
from proxy.lineage.index import client_hash
from proxy.lineage.keys import Request
from proxy.lineage.link import Evidence, Link, Relation
from proxy.lineage.records import BranchKind, BranchRecord, Changes, Hint, Mark
from proxy.lineage.search import Found, Search
from proxy.transcript import ClientId, HumanTurn

_SAME_LINE = ("compacted", "edited")  # relations in which people see the same branch go on


class Seed(msgspec.Struct, frozen=True):
    """How a branch begins."""

    relation: Relation
    parent: Branch | None = None
    session: Session | None = None
    kind: BranchKind = "main"
    base: tuple[HumanTurn, ...] = ()
    cut: bool = False  # history is gone: a new epoch
    place: int = 0  # keys that it shares with its parent
    summaries: frozenset[bytes] = frozenset()


class Linker:
    """Makes links, and the branches that they need."""

    def __init__(self, forest: Forest, new_id: Callable[[], str]) -> None:
        self._forest = forest
        self._new_id = new_id

    # --- links -------------------------------------------------------------------------------------------------------

    def unattached(self, request: Request, sources: Sequence[Branch] = (), detail: str = "") -> Link:
        """Links a side call to nothing; a summary keeps the branches it may be of."""
        summary = request.side in ("summary", "flat")
        sessions = tuple(dict.fromkeys(branch.session.id for branch in sources))
        return Link(
            "",
            None,
            "summary" if summary else "side",
            "new",
            detail or "side call",
            sessions,
            keys=request.keys,
            chain=request.chain,
            humans=_spoken_before(request) if summary else (),
            side=request.side,
            sources=tuple(branch.id for branch in sources) if summary else (),
        )

    def same(self, branch: Branch, request: Request) -> Link:
        """Links a request that was sent again."""
        self._forest.touch(branch)
        return self._linked(branch, request, "resend", self._match(request, "chain"), "the same bytes")

    def begin(
        self,
        request: Request,
        system: System,
        relation: Relation,
        detail: str,
        *,
        parent: Branch | None = None,
        session: Session | None = None,
    ) -> Link:
        """Links a request to a branch of its own, with nothing cut off before it."""
        kind: BranchKind = "sub" if relation == "subagent" else "main"
        seed = Seed(relation, parent, session or (parent.session if parent is not None else None), kind)
        match: Evidence = "chain" if parent is not None and request.client is None else "new"
        if session is not None or (parent is not None and request.client is not None):
            match = self._match(request, "chain")
        return self._planted(request, system, seed, match, detail)

    def attach(self, found: Found, search: Search) -> Link:
        """Links a request to the branch it continues, or to one that begins where it parts from it."""
        branch, request = search.newest(found.branches), search.request
        match = self._match(request, found.match)
        if request.side in ("summary", "flat"):
            return self._summary(branch, request, match, found.detail)
        if not found.place:
            summaries = frozenset(summaries_in(search, [branch]))
            base = without(branch.visible(), request.keys) if found.whole else base_behind([branch], search)
            seed = Seed("compacted", branch, branch.session, base=base, cut=True, summaries=summaries)
            return self._parted(branch, search, seed, match, found.detail)
        if _other_agent(branch, request, search.system):
            seed = Seed("forked", branch, branch.session, base=branch.base, place=found.place)
            return self._parted(branch, search, seed, match, found.detail)
        if found.place < branch.requested:
            return self._parted(branch, search, _shortened(branch, found, request), match, found.detail)
        return self.extend(branch, request, search.system, match, found.detail)

    def extend(self, branch: Branch, request: Request, system: System, match: Evidence, detail: str) -> Link:
        """Links a request that begins with all that its branch's newest request brought."""
        again = len(request.keys) == branch.requested
        changes = self._forest.grow(branch, request, system)
        return self._linked(branch, request, "resend" if again else "extends", match, detail, changes)

    def compaction_of(self, begun: Link, request: Request) -> Link:
        """Links an order to compact what wasn't seen before to the branch that has just begun for it."""
        linked = self._summary(self._forest.branches[begun.branch or ""], request, begun.match, begun.detail)
        return replace(linked, changes=begun.changes)

    def tie(self, found: Found, search: Search) -> Link:
        """Links a request that several sessions could have sent."""
        request, branches = search.request, sorted(found.branches, key=lambda branch: branch.id)
        if found.place:
            waiting = [branch for branch in branches if len(branch.keys) == found.place and branch.answered]
            for group in (branches, waiting):
                if group and len({branch.base_keys for branch in group}) == 1:
                    # Equal path and equal base: any choice shows the same words.
                    choice = max([b for b in waiting if b in group] or group, key=lambda b: b.used)
                    return self.attach(
                        Found([choice], found.place, found.match, f"{found.detail}, equal sessions", alone=False),
                        search,
                    )
        here = {key.hash for key in request.keys}
        live = [branch for branch in branches if branch.pending or branch.summaries & here]
        if not found.place and live and len({branch.session for branch in live}) == 1:
            return self.attach(Found(live, 0, found.match, f"{found.detail}, summary pending"), search)
        if request.side:
            return self.unattached(request, branches, f"{found.detail}, several sessions")
        summaries = frozenset(summaries_in(search, branches))
        seed = Seed("ambiguous", base=base_behind(branches, search), cut=True, summaries=summaries)
        linked = self._planted(request, search.system, seed, found.match, f"{found.detail}, several sessions")
        return replace(linked, candidates=tuple(dict.fromkeys(branch.session.id for branch in branches)))

    def claim(self, linked: Link, client: ClientId) -> Link:
        """Lets a client's id lead to the branch that its request was linked to."""
        name = client_hash(client.id)
        branch = self._forest.branches.get(linked.branch or "")
        known = linked.changes
        if branch is None or (name in self._forest.clients and known.branch is None):
            return linked
        sub = linked.relation == "subagent" and not client.agent
        scope = self._forest.clients.setdefault(name, Scope(branch.session, sub))
        mark = Mark("client", name, SUB if scope.sub else b"")
        changes = msgspec.structs.replace(
            known,
            state=known.state or branch.state(),
            marks=(*known.marks, mark),
            hints=(*known.hints, Hint(name, branch.id)),
        )
        return replace(linked, changes=changes)

    def _match(self, request: Request, match: Evidence) -> Evidence:
        if request.client is None or client_hash(request.client.id) not in self._forest.clients:
            return match
        return "header" if request.client.source == "header" else "client_id"

    def _summary(self, branch: Branch, request: Request, match: Evidence, detail: str) -> Link:
        humans = branch.humans if request.side == "flat" else _spoken_before(request, branch)
        return Link(
            branch.session.id,
            branch.id,
            "summary",
            match,
            detail,
            base=branch.base if request.side == "flat" else without(branch.base, request.keys),
            humans=() if branch.sub else humans,
            keys=request.keys,
            chain=request.chain,
            epoch=branch.record.epoch,
            parent_branch=branch.record.parent or None,
            line=branch.record.line,
            side=request.side,
            sources=(branch.id,),
        )

    def _linked(
        self,
        branch: Branch,
        request: Request,
        relation: Relation,
        match: Evidence,
        detail: str,
        changes: Changes | None = None,
    ) -> Link:
        return Link(
            branch.session.id,
            branch.id,
            relation,
            match,
            detail,
            base=branch.left,
            humans=branch.humans,
            keys=branch.spoken,
            chain=request.chain,
            numbers=branch.numbers[: len(branch.spoken)],
            epoch=branch.record.epoch,
            summary_keys=branch.summary_at,
            parent_branch=branch.record.parent or None,
            line=branch.record.line,
            changes=changes or Changes(state=branch.state()),
            path=request.path,
        )

    # --- branches that begin -----------------------------------------------------------------------------------------

    def _parted(self, branch: Branch, search: Search, seed: Seed, match: Evidence, detail: str) -> Link:
        seed = replace(seed, kind=branch.record.kind)
        was_pending, branch.pending = branch.pending, False
        linked = self._planted(search.request, search.system, seed, match, detail)
        if not was_pending or not seed.cut:
            branch.pending = was_pending and not seed.cut
            return linked
        changes = msgspec.structs.replace(linked.changes, states=(branch.state(),))
        return replace(linked, changes=changes)

    def _planted(self, request: Request, system: System, seed: Seed, match: Evidence, detail: str) -> Link:
        branch = self._plant(request, system, seed)
        changes = self._forest.grow(branch, request, system)
        record = branch.record
        if seed.place or seed.cut:
            record = msgspec.structs.replace(record, numbers=branch.numbers, offset=branch.highest)
            branch.record = record
        marks = (*changes.marks, *branch.marks())
        changes = msgspec.structs.replace(changes, branch=record, marks=tuple(dict.fromkeys(marks)))
        return self._linked(branch, request, seed.relation, match, detail, changes)

    def _plant(self, request: Request, system: System, seed: Seed) -> Branch:
        session = seed.session or self._forest.session(self._new_id())
        parent = seed.parent
        inherits = parent is not None and seed.relation != "subagent"
        client = request.client
        name = self._new_id()
        record = BranchRecord(
            name,
            session.id,
            seed.kind,
            parent.id if parent is not None else "",
            seed.relation,
            (parent.record.epoch if parent is not None and inherits else 0) + seed.cut,
            request.transcript.dialect,
            request.product,
            request.profile,
            client.id if client is not None else "",
            client.agent if client is not None else "",
            request.transcript.tools,
            seed.base,
            line=parent.record.line if parent is not None and seed.relation in _SAME_LINE else name,
            system=request.transcript.system,
        )
        branch = Branch(record, session, system)
        branch.summaries |= seed.summaries
        if parent is not None and inherits:
            branch.emitted |= parent.emitted
            branch.summaries |= parent.summaries
            self._number(branch, request, seed, parent)
        self._forest.add(branch)
        return branch

    def _number(self, branch: Branch, request: Request, seed: Seed, parent: Branch) -> None:
        """Numbers the first keys of a branch that goes on from another one."""
        keys = named(request.keys, branch.summaries)
        kept: dict[bytes, int] | None = None
        if seed.cut or seed.relation == "edited":
            kept = {turn.key: turn.number for turn in parent.base}
            kept.update((key.hash, number) for key, number in zip(parent.keys, parent.numbers, strict=False))
        known = parent.numbers[: seed.place]
        highest = parent.highest if kept is not None else max(known, default=0)
        branch.numbers = numbered(keys, known, highest, kept)
        branch.highest = max(highest, *branch.numbers, 0) if branch.numbers else highest


def _other_agent(branch: Branch, request: Request, system: System) -> bool:
    """Another prompt and a set of tools that isn't nearly the same: a helper that reads the main agent's transcript."""
    if branch.system.akin(system):
        return False
    old, new = set(branch.record.tools), set(request.transcript.tools)
    return not (old <= new or (new <= old and len(new) * 2 > len(old)))


def _shortened(branch: Branch, found: Found, request: Request) -> Seed:
    """Part of what was sent isn't there any more: cut out of the middle, or taken back."""
    place, rest = found.place, request.keys[found.place :]
    ids = {key.strong for key in rest if key.strong}
    ours = (
        set()
        if ids or not found.alone
        else {key.hash for key in rest if key.kind in "ac" and key.hash in branch.emitted}
    )
    later = [
        at for at in range(place, len(branch.keys)) if branch.keys[at].strong in ids or branch.keys[at].hash in ours
    ]
    if not later:
        return Seed("rewound", branch, branch.session, base=branch.base, place=place)
    # Our later output is still there, so nothing was taken back: what stood in between was cut out.
    between = {key.hash for key in branch.keys[place : later[-1]] if key.kind == "u"}
    gone = without([turn for turn in branch.humans if turn.key in between], request.keys)
    return Seed("edited", branch, branch.session, base=union(branch.base, gone), place=place)


def _spoken_before(request: Request, branch: Branch | None = None) -> tuple[HumanTurn, ...]:
    """Gives the human turns in front of the order to summarise."""
    keys = named(request.keys, branch.summaries if branch is not None else set())
    numbers = numbered(keys, (), 0)
    if branch is not None:
        shared = branch.shared(request.chain)
        known = {turn.key: turn.number for turn in (*branch.base, *branch.humans)}
        numbers = numbered(keys, branch.numbers[:shared], branch.highest, known)
    turns = turns_of(keys, numbers, request.transcript.messages)
    order = next((key for key in reversed(keys) if key.kind == "u"), None)
    if request.transcript.compacts or order is None or order.message != len(request.transcript.messages) - 1:
        return turns
    return turns[:-1]
