"""The evidence for where a request belongs, in the order of its strength."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from proxy.lineage.branch import Branch, Proof, System
from proxy.lineage.emissions import SHORT, Emissions
from proxy.lineage.index import Index, pair_hash, strong_hash
from proxy.lineage.keys import Path, Request
from proxy.lineage.link import Evidence
from proxy.lineage.records import EmissionRecord
from proxy.transcript import Key

_NEAR = 3  # keys above the deepest proven node in which an exactly waiting branch is still preferred
_RUN = 2  # neighbouring pairs in a row that prove a kept tail: three keys


@dataclass(slots=True)
class Found:
    """Branches that a request may continue, and how far it follows them."""

    branches: list[Branch]
    place: int  # keys of the request that stand on the path, 0 = history gone
    match: Evidence
    detail: str
    alone: bool = True  # no other session holds this node
    derived: bool = False  # only a summary that was used before
    whole: bool = False  # all that was said before counts, whatever of it came back


@dataclass(slots=True)
class Search:
    """Looks for the branches of one request."""

    index: Index
    emissions: Emissions
    request: Request
    system: System
    fits: Callable[[Branch], bool]
    branch: Callable[[str], Branch | None]
    deepest: tuple[int, list[Branch]] = (0, [])  # longest known prefix, proven or not
    _returned: list[EmissionRecord] | None = field(default=None)
    _votes: dict[Branch, int] | None = field(default=None)

    def holders(self, place: int) -> list[Branch]:
        """Gives the branches that know keys[:place]."""
        return [branch for branch in self.index.chain.get(self.request.chain[place - 1]) if self.fits(branch)]

    def run(self) -> Found | None:
        """Gives the best proven continuation."""
        found, by_summary = self._prefix()
        if found is not None:
            return found
        if by_summary is not None and (found := self._summary_path(*by_summary)) is not None:
            return found
        return self._history_gone()

    # --- 1: a known prefix with proof --------------------------------------------------------------------------------

    def _prefix(self) -> tuple[Found | None, tuple[int, list[Branch]] | None]:
        best: tuple[int, list[Branch]] | None = None
        by_summary: tuple[int, list[Branch]] | None = None
        for place in range(len(self.request.chain), 0, -1):
            holders = self.holders(place)
            if not holders:
                continue
            if not self.deepest[0]:
                self.deepest = (place, holders)
            if self.request.path.strong[place - 1]:
                knowing = self._knowing_ids(holders, place)
                if knowing:
                    best = (place, knowing)
                    break
                continue
            best, stop = self._weigh(best, place, holders)
            if stop:
                break
            if by_summary is None and best is None:
                by_summary = self._holding_summary(place, holders)
        return (self._at(*best) if best is not None else None), by_summary

    def _at(self, place: int, branches: list[Branch]) -> Found:
        alone = len({branch.session for branch in self.holders(place)}) == 1
        return Found(branches, place, "chain", f"prefix {place}/{len(self.request.keys)}", alone)

    def _knowing_ids(self, holders: list[Branch], place: int) -> list[Branch]:
        known = {branch: known_ids(self.request.path, branch, place) for branch in holders}
        most = max(known.values())
        if most * 2 > self.request.path.strong[place - 1]:
            return [branch for branch, count in known.items() if count == most]
        if most:
            return []
        # Ids that the client made itself (a resume): the branch knew none there.
        keys = self.request.keys[:place]
        fresh = [branch for branch in holders if not any(key.strong for key in branch.keys[:place])]
        return [branch for branch in fresh if prove(branch, Proof(), keys) > 0]

    def _weigh(
        self, best: tuple[int, list[Branch]] | None, place: int, holders: list[Branch]
    ) -> tuple[tuple[int, list[Branch]] | None, bool]:
        proven = [branch for branch in holders if self._proven(branch, place)]
        akin = exact(proven, self.system)
        if not akin:
            return (place, proven) if proven and best is None else best, False
        if best is None or not any(branch.system.akin(self.system) for branch in best[1]):
            best = (place, akin)
        waiting = [branch for branch in akin if len(branch.keys) == place and branch.answered]
        if waiting and (waiting == best[1] or _bases(waiting) <= _bases(best[1])):
            return (place, waiting), True
        return best, best[0] - place > _NEAR

    def _proven(self, branch: Branch, place: int) -> bool:
        if len(branch.chain) >= place and branch.chain[place - 1] == self.request.chain[place - 1]:
            return 0 < branch.proof.at <= place
        return prove(branch, Proof(), self.request.keys[:place]) > 0

    def _holding_summary(self, place: int, holders: list[Branch]) -> tuple[int, list[Branch]] | None:
        keys = self.request.keys[:place]
        holding = [b for b in holders if b.summaries and any(key.hash in b.summaries for key in keys)]
        return (place, holding) if holding else None

    def _summary_path(self, place: int, holding: list[Branch]) -> Found | None:
        pending = [branch for branch in self.by_summary() if branch.pending]
        both = list(dict.fromkeys(holding + pending))
        if self.votes() and not any(branch in both for branch in most_of(self.votes())):
            return None  # a client may say the same of each cut: the calls behind the text tell which one it was
        voted = [branch for branch in both if branch in self.votes()]
        branches = voted or both
        waiting = [branch for branch in branches if branch.pending]
        if one(branches):
            return Found(waiting or branches, 0 if waiting else place, "summary_text", "summary that was used")
        if self.votes():
            return None
        return Found(branches, 0, "summary_text", "summary that was used", alone=False)

    # --- 2: the history is gone --------------------------------------------------------------------------------------

    def _history_gone(self) -> Found | None:
        by_ids = most_of(self.votes())
        by_text = self.by_summary()
        # A summary that hasn't come back yet is expected; one that has is more likely quoted.
        by_text = [branch for branch in by_text if branch.pending] or by_text
        if by_ids:
            both = [b for b in by_ids if any(b.session is other.session for other in by_text)]
            match: Evidence = "tail_overlap"
            return Found(both or by_ids, 0, match, "call ids and summary text" if both else "call ids")
        expected = bool(self.request.side) or self._unsealed() or any(branch.pending for branch in by_text)
        if by_text and (expected or any(emission.summary for emission in self.returned())):
            return Found(by_text, 0, "summary_text", "summary text", derived=not expected)
        kept = self._kept()
        if kept is None and by_text:
            return self._taken_back(by_text) or Found(by_text, 0, "summary_text", "summary text", derived=True)
        return kept

    def _taken_back(self, answering: list[Branch]) -> Found | None:
        """A known opening with an answer in it, and answers in their place that one session alone got."""
        place, holders = self.deepest
        sessions = {branch.session for branch in answering}
        here = [branch for branch in holders if branch.session in sessions]
        if not here or len(sessions) > 1 or not any(key.kind in "ac" for key in self.request.keys[:place]):
            return None
        return Found(here, place, "chain", "known opening with its answer")

    def _kept(self) -> Found | None:
        """The newest turns came back as they were: no text of an answer was taken out of its place."""
        opening = [branch for branch in self._known_opening() if not self._contradicted(branch)]
        if opening:
            return Found(opening, 0, "tail_overlap", "known opening and newest output")
        tail = [branch for branch in self._tail() if not self._contradicted(branch)]
        return Found(tail, 0, "tail_overlap", "kept tail") if tail else None

    def _unsealed(self) -> bool:
        """Whether a sealed item came back: nobody can quote that."""
        sealed = {key.hash for key in self.request.keys if key.kind == "o"}
        return any(emission.whole in sealed for emission in self.returned())

    def votes(self) -> dict[Branch, int]:
        """Gives how many strong call ids of the body each branch knows."""
        if self._votes is None:
            self._votes = {}
            for key in self.request.keys:
                for branch in self.index.strong.get(strong_hash(key.strong)) if key.strong else ():
                    if self.fits(branch):
                        self._votes[branch] = self._votes.get(branch, 0) + 1
        return self._votes

    def returned(self) -> list[EmissionRecord]:
        """Gives the emissions that came back in this body."""
        if self._returned is None:
            self._returned = self.emissions.returned(self.request)
        return self._returned

    def by_summary(self) -> list[Branch]:
        """Gives the branches whose output came back as text."""
        names = {name for emission in self.returned() for name in emission.branches}
        return [b for name in sorted(names) if (b := self.branch(name)) is not None and self.fits(b)]

    def _known_opening(self) -> list[Branch]:
        place, holders = self.deepest
        first = self.request.keys[0] if self.request.keys else None
        if not place or first is None or first.kind != "u" or first.length < SHORT or not one(holders):
            return []
        later = {key.hash for key in self.request.keys[place:] if key.kind in "ac"}
        return [b for b in holders if b.keys and b.keys[-1].kind in "ac" and b.keys[-1].hash in later]

    def _contradicted(self, branch: Branch) -> bool:
        """Whether the same calls gave other results there, each of them: the words are the same, the talk isn't."""
        known = results_of(branch.path)
        told = [(call, mark) for call, mark in self.request.path.results if call in known]
        return bool(told) and not any(mark in known[call] for call, mark in told)

    def _tail(self) -> list[Branch]:
        """Gives the branches whose turns stand behind a gap.

        What stands at the head of both was never cut; a branch with a base begins behind a gap itself.
        """
        longest: dict[Branch, int] = {}
        running: dict[Branch, int] = {}
        heads: dict[Branch, int] = {}
        for place, (first, second) in enumerate(pairwise(self.request.keys), start=1):
            hits = []
            for branch in self.index.pairs.get(pair_hash(first, second)):
                if branch not in heads:
                    heads[branch] = 0 if branch.base else branch.shared(self.request.chain)
                if place >= heads[branch] and self.fits(branch):
                    hits.append(branch)
            running = {branch: running.get(branch, 0) + 1 for branch in hits}
            for branch, count in running.items():
                longest[branch] = max(longest.get(branch, 0), count)
        most = max(longest.values(), default=0)
        return [branch for branch, count in longest.items() if count * 2 >= most] if most >= _RUN else []

    # --- ties --------------------------------------------------------------------------------------------------------

    def narrowed(self, branches: list[Branch]) -> list[Branch]:
        """Gives fewer branches when several sessions are left: same prompt, same tools, no contradicting results."""
        if one(branches):
            return branches
        branches = self._alike(branches)
        return branches if one(branches) else self._agreeing(branches)

    def _alike(self, branches: list[Branch]) -> list[Branch]:
        branches = exact(branches, self.system) or branches
        tools = self.request.transcript.tools
        return [branch for branch in branches if branch.record.tools == tools] or branches

    def _agreeing(self, branches: list[Branch]) -> list[Branch]:
        known = {branch: results_of(branch.path) for branch in branches}
        for call, mark in self.request.path.results:
            equal = [branch for branch in branches if mark in known[branch].get(call, ())]
            if equal:
                branches = [branch for branch in branches if branch in equal or call not in known[branch]]
        return branches

    def newest(self, branches: list[Branch]) -> Branch:
        """Gives the branch of one session that fits best: same prompt and tools, longest shared path, newest.

        Of branches that part from the request at one place, the one that knows most of what comes behind it.
        """
        branches = self._alike(branches)
        shared = {branch: branch.shared(self.request.chain) for branch in branches}
        most = max(shared.values())
        return self._latest([branch for branch, place in shared.items() if place == most], most)

    def _latest(self, branches: list[Branch], place: int) -> Branch:
        if len(branches) == 1:
            return branches[0]
        rest = {key.hash for key in self.request.keys[place:] if key.strong or key.length >= SHORT}
        return max(branches, key=lambda one: (len(rest.intersection(key.hash for key in one.keys)), one.used))


def _bases(branches: Sequence[Branch]) -> set[frozenset[bytes]]:
    return {branch.base_keys for branch in branches}


def exact(branches: Sequence[Branch], system: System) -> list[Branch]:
    """Gives the branches of the same system text; without one, those of the same family."""
    return [branch for branch in branches if branch.system.text == system.text] or [
        branch for branch in branches if branch.system.akin(system)
    ]


def one(branches: Sequence[Branch]) -> bool:
    """Whether all belong to one session."""
    return len({branch.session for branch in branches}) == 1


def most_of(votes: dict[Branch, int]) -> list[Branch]:
    """Gives the branches with most votes."""
    most = max(votes.values(), default=0)
    return [branch for branch, count in votes.items() if count == most]


def results_of(path: Path | None) -> dict[bytes, set[bytes]]:
    """Gives the fingerprints of the results of each call."""
    found: dict[bytes, set[bytes]] = {}
    for call, mark in path.results if path is not None else ():
        found.setdefault(call, set()).add(mark)
    return found


def known_ids(path: Path, branch: Branch, place: int) -> int:
    """Gives how many strong call ids in the first keys the branch knows, without a look at bytes that it has seen."""
    held = 0
    if branch.path is not None and path.grew_from(branch.path):
        held = min(place, len(branch.path.keys))
    known = path.strong[held - 1] if held else 0
    return known + sum(1 for key in path.keys[held:place] if key.strong and key.strong in branch.strong)


def prove(branch: Branch, proof: Proof, keys: Sequence[Key]) -> int:
    """Goes on searching a path for our own output to this branch; gives the shortest proven prefix, 0 for none."""
    for place in range(proof.seen, len(keys)):
        key = keys[place]
        proof.text = proof.text or (key.kind == "a" and key.hash in branch.emitted)
        proof.calls += key.kind == "c" and key.hash in branch.emitted
        proof.summary = proof.summary or key.hash in branch.summaries
        if not proof.at and _suffices(branch, proof, keys[0]):
            proof.at = place + 1
    proof.seen = len(keys)
    return proof.at


def _suffices(branch: Branch, proof: Proof, head: Key) -> bool:
    if head.kind not in "us" and head.hash not in branch.summaries:
        return False  # a head that was cut off proves nothing
    if not branch.base:
        return proof.text or proof.calls > 0
    return proof.text or proof.calls > 1 if proof.summary else proof.text and proof.calls > 1
