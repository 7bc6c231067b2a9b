"""Which session and branch a request belongs to, and which human words it stands on that are cut off by now."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from msgspec.structs import replace

from proxy.lineage.answers import Answers
from proxy.lineage.branch import Branch, System
from proxy.lineage.flat import flat_branches, flat_parts, flat_text
from proxy.lineage.forest import Forest
from proxy.lineage.index import client_hash
from proxy.lineage.keys import CallLike, KeyReader, Reader, Request
from proxy.lineage.known_paths import standing, unanswered, walked, whole_path
from proxy.lineage.link import Evidence, Link
from proxy.lineage.linking import Linker
from proxy.lineage.lookups import hashes_of
from proxy.lineage.notice import by_notice
from proxy.lineage.records import Changes, StoredBranch
from proxy.lineage.search import Found, Search, exact, one
from proxy.lineage.words import as_first_said
from proxy.transcript import ClientId, Message, Part

_SYSTEMS_KEPT = 512
LEAST_PROMPT = 24  # characters of a call's argument that can be a sub-agent's task


class Engine:
    """Links requests of one tenant and namespace; does no I/O, and decides the same after a restore."""

    def __init__(self, new_id: Callable[[], str], reader: KeyReader | None = None, *, keep: int = 2000) -> None:
        self._reader = reader or KeyReader()
        self._forest = Forest(keep=keep)
        self._linker = Linker(self._forest, new_id)
        self._answers = Answers(self._forest, new_id)
        self._systems: dict[str, System] = {}

    # --- what the pipeline asks --------------------------------------------------------------------------------------

    def identify(self, request: Request) -> Link:
        """Links a request; `Link.changes` is what a store must write."""
        self._forest.tick()
        system = self._system(request.transcript.system_text)
        request = as_first_said(request, self._forest)
        again = self._again(request)
        if again is not None:
            return self._linker.same(again, request)
        link = self._identified(request, system)
        if link.branch is not None or not request.transcript.compacts:
            return link
        begun = self._linker.begin(request, system, "new", "compacted before anything else was seen")
        if request.client is not None:
            begun = self._linker.claim(begun, request.client)
        return self._linker.compaction_of(begun, request)

    def _identified(self, request: Request, system: System) -> Link:
        if request.client is not None:
            return self._by_client(request, system, request.client)
        search = self._search(request, system, self._everywhere(request))
        link = self._by_content(request, system, search)
        return link or self._linker.begin(request, system, "new", "nothing known")

    def answer(
        self,
        link: Link,
        text: str,
        calls: Sequence[CallLike],
        complete: bool,  # noqa: FBT001
        parts: Sequence[Part] = (),
    ) -> Changes:
        """Takes the model's answer to a linked request; only a complete one is evidence.

        `parts` are text and calls once more, in their order and with what else there is, where a dialect knows that.
        """
        return self._answers.take(link, text, calls, parts, complete=complete)

    def knows(self, branch_id: str) -> bool:
        """Whether the branch is in memory."""
        return branch_id in self._forest.branches

    def extended(self, branch_id: str, request: Request, match: Evidence) -> Link | None:
        """Links a request that is known to go on from its branch's newest one; None when that has moved on."""
        branch = self._forest.branches.get(branch_id)
        if branch is None or branch.path is None or branch.same or not request.path.grew_from(branch.path):
            return None
        self._forest.tick()
        return self._linker.extend(branch, request, self._system(request.transcript.system_text), match, "a glance")

    def alone(self, branch_id: str, messages: Sequence[Message], *, again: bool = False) -> bool:
        """Whether a branch's newest request is these messages, and no other branch can claim what goes on from them.

        Only a path that something of the model's stands in, with nothing cut off before it, is told from others. Sent
        `again` as they are, they belong to the branch also where others went on from them.
        """
        branch = self._forest.branches.get(branch_id)
        path = branch.path if branch is not None else None
        if branch is None or path is None or not path.chain or branch.base or branch.pending or not branch.alive:
            return False
        if len(path.digests) != len(messages) or path.digests[-1] != messages[-1].digest:
            return False
        chain = self._forest.index.chain
        holders = chain.get(path.chain[-1])
        spoken = next((place for place in range(len(path.keys), 0, -1) if path.keys[place - 1].kind in "ac"), 0)
        if not again or not spoken:
            return bool(spoken) and list(holders) == [branch]
        same = [one for one in holders if one.path is not None and one.path.digests == path.digests]
        waiting = [one for one in chain.get(path.chain[spoken - 1]) if one.answered and len(one.keys) == spoken]
        return same == [branch] and not waiting

    def restore(self, stored: StoredBranch, messages: Sequence[Message], profile: Reader) -> None:
        """Takes a branch from a store, with the messages of its newest request."""
        if not self.knows(stored.record.id):
            system = [stored.record.system] if stored.record.system else []
            system += [message.text for message in _leading(messages)]
            self._forest.replant(
                stored, self._reader.path(messages, profile), messages, self._system("\n".join(system))
            )

    def forget(self, names: Collection[str]) -> list[str]:
        """Takes branches, and the branches of sessions, of these ids out of memory; gives the branches' ids."""
        return self._forest.forget(names)

    def lookups(self, request: Request) -> tuple[bytes, ...]:
        """Gives the hashes under which a store may know branches that matter here; none when memory suffices."""
        return () if self._at_hand(request) else hashes_of(request)

    # --- where to look -----------------------------------------------------------------------------------------------

    def _system(self, text: str) -> System:
        system = self._systems.get(text)
        if system is None:
            if len(self._systems) >= _SYSTEMS_KEPT:
                self._systems.clear()
            system = self._systems[text] = System.of(text)
        return system

    def _search(self, request: Request, system: System, fits: Callable[[Branch], bool]) -> Search:
        forest = self._forest
        return Search(forest.index, forest.emissions, request, system, fits, forest.branches.get)

    @staticmethod
    def _everywhere(request: Request) -> Callable[[Branch], bool]:
        dialect, product = request.transcript.dialect, request.product

        def fits(branch: Branch) -> bool:
            record = branch.record
            return (
                branch.alive
                and record.dialect == dialect
                and (not product or not record.product or record.product == product)
            )

        return fits

    def _inside(self, client: ClientId) -> Callable[[Branch], bool] | None:
        """Gives what belongs to a known client session, None when the id is new."""
        scope = self._forest.clients.get(client_hash(client.id))
        if scope is None:
            return None

        def fits(branch: Branch) -> bool:
            if branch.session is not scope.session or branch.record.agent != client.agent:
                return False
            return (
                branch.record.client == client.id
                if scope.sub
                else not branch.sub or bool(client.agent) or branch.record.client == client.id
            )

        return fits

    def _at_hand(self, request: Request) -> bool:
        if request.client is not None and client_hash(request.client.id) not in self._forest.clients:
            return False
        for place in range(len(request.chain), max(0, len(request.chain) - 64), -1):
            for branch in self._forest.index.chain.get(request.chain[place - 1]):
                if branch.path is not None and branch.requested <= place and request.path.grew_from(branch.path):
                    return True
        return False

    def _again(self, request: Request) -> Branch | None:
        """Gives the branch whose newest request had these very bytes: a retry, not a new turn."""
        if not request.chain or request.side:
            return None
        fits = self._inside(request.client) if request.client is not None else self._everywhere(request)
        same = [b for b in self._forest.index.chain.get(request.chain[-1]) if _equal(b, request)]
        if fits is None or not (same := [branch for branch in same if fits(branch)]):
            return None
        if request.client is not None or request.retry:
            return same[-1]
        spoken = next((place for place in range(len(request.keys), 0, -1) if request.keys[place - 1].kind in "ac"), 0)
        if not spoken:
            return None  # an opening that is the same is a conversation of its own
        # Another talk with the same words may be at this very point, and has the better claim.
        waiting = self._forest.index.chain.get(request.chain[spoken - 1])
        ready = any(b not in same and fits(b) and b.answered and len(b.keys) == spoken for b in waiting)
        return None if ready else same[-1]

    # --- content -----------------------------------------------------------------------------------------------------

    def _by_content(self, request: Request, system: System, search: Search) -> Link | None:
        """Links by proven content, then by what only a label hangs on; None when nothing speaks."""
        if request.side == "flat":
            return self._flat(request, search)
        link = self._by_proof(request, system, search)
        if link is not None:
            return link
        if request.side:
            # A branch with a base knows more than one that only looks alike: between them the words must prove it.
            plain = request.side == "summary" and not any(branch.base for branch in search.deepest[1])
            whole = whole_path(search) if plain else None
            return self._linker.attach(whole, search) if whole is not None else self._linker.unattached(request)
        task = self._task(request, system, search) or self._cut(request, system, search)
        if task is not None:
            return task
        waiting = unanswered(search) or whole_path(search)
        return self._linker.attach(waiting, search) if waiting is not None else None

    def _by_proof(self, request: Request, system: System, search: Search) -> Link | None:
        if request.side in ("title", "other"):
            return self._linker.unattached(request)
        found = search.run()
        if found is None:
            return None
        if found.derived:
            link = self._linker.begin(request, system, "derived", "a summary that was used before stands in it")
            return replace(link, candidates=_sessions(found.branches))
        found.branches = search.narrowed(found.branches)
        if one(found.branches):
            return self._linker.attach(standing(search, found), search)
        return self._linker.tie(found, search)

    def _flat(self, request: Request, search: Search) -> Link:
        text = flat_text(request.transcript.messages[-1])
        keeps_tail = "<prior-summary>" not in text and "Create a new anchored summary" not in text
        branches = flat_branches(search, flat_parts(text), keeps_tail=keeps_tail)
        if branches and one(branches):
            found = Found([search.newest(branches)], 0, "chain", "flattened transcript")
            return self._linker.attach(found, search)
        return self._linker.unattached(request, branches, "flattened transcript")

    def _task(self, request: Request, system: System, search: Search) -> Link | None:
        """A sub-agent: its first words are an argument of a call that we answered with."""
        keys = request.keys
        if not keys or any(key.kind in "aco" for key in keys) or keys[-1].length < LEAST_PROMPT:
            return None
        holders = [b for b in self._forest.index.prompts.get(keys[-1].hash) if search.fits(b)]
        tools = set(request.transcript.tools)
        holders = [b for b in holders if not b.system.akin(system) or set(b.record.tools) != tools]
        if not holders:
            return None
        if one(holders):
            return self._linker.begin(request, system, "subagent", "words are a call's argument", parent=holders[-1])
        link = self._linker.begin(request, system, "subagent", "words are arguments of several calls")
        return replace(link, candidates=_sessions(holders))

    def _cut(self, request: Request, system: System, search: Search) -> Link | None:
        """A talk that its client cut without a model, and said so."""
        branches = by_notice(search)
        if branches and one(branches):
            going_on = [b for b in branches if b.record.epoch and 0 < b.requested <= b.shared(request.chain)]
            place = going_on[-1].shared(request.chain) if going_on else 0
            found = Found(going_on[-1:] or branches, place, "summary_text", "note of a cut", whole=True)
            return self._linker.attach(found, search)
        if not branches:
            return None
        link = self._linker.begin(request, system, "new", "note of a cut, several sessions")
        return replace(link, candidates=_sessions(branches))

    # --- client ids --------------------------------------------------------------------------------------------------

    def _by_client(self, request: Request, system: System, client: ClientId) -> Link:
        fits = self._inside(client)
        if fits is None:
            link = self._first_of_id(request, system, client)
        else:
            link = self._of_known_id(request, system, client, self._search(request, system, fits))
        return self._linker.claim(link, client)

    def _first_of_id(self, request: Request, system: System, client: ClientId) -> Link:
        parent = self._forest.clients.get(client_hash(client.parent)) if client.parent else None
        if parent is not None and not request.side:
            main = parent.session.branches[0]
            return self._linker.begin(request, system, "subagent", "names its parent", parent=main)
        search = self._search(request, system, self._everywhere(request))
        # A new id joins an old conversation by proof alone.
        proven = self._flat(request, search) if request.side == "flat" else self._by_proof(request, system, search)
        if proven is not None:
            return proven
        if request.side:
            return self._linker.unattached(request)
        return self._linker.begin(request, system, "new", "new session id")

    def _of_known_id(self, request: Request, system: System, client: ClientId, search: Search) -> Link:
        if request.side in ("title", "other"):
            return self._linker.unattached(request)
        within = self._forest.within(client, search.fits)
        if not within:
            main = self._forest.clients[client_hash(client.id)].session.branches[0]
            return self._linker.begin(request, system, "subagent", "another agent id", parent=main)
        if request.side == "flat":
            link = self._flat(request, search)
            if link.branch is not None:
                return link
        found = search.run() if request.side != "flat" else None
        if found is not None:
            found = standing(search, found)
        found = found or walked(search)
        if found is not None:
            return self._linker.attach(found, search)
        return self._without_path(request, system, search, within)

    def _without_path(self, request: Request, system: System, search: Search, within: list[Branch]) -> Link:
        akin = exact(within, system)
        if request.side:
            found = Found([max(akin or within, key=lambda b: b.used)], 0, "chain", "newest branch")
            return self._linker.attach(found, search)
        if akin:
            found = Found([max(akin, key=lambda b: b.used)], 0, "chain", "newest branch of its prompt")
            return self._linker.attach(found, search)
        task = self._task(request, system, search)
        if task is not None:
            return task
        return self._linker.begin(request, system, "new", "another prompt", session=within[0].session)


def _leading(messages: Sequence[Message]) -> list[Message]:
    found = []
    for message in messages:
        if message.role not in ("system", "developer"):
            break
        found.append(message)
    return found


def _equal(branch: Branch, request: Request) -> bool:
    return branch.path is not None and branch.path.digests == request.path.digests


def _sessions(branches: Sequence[Branch]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(branch.session.id for branch in branches))
