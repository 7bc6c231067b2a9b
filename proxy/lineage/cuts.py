"""What a cut took away: the base of the branch behind it, and which texts are the summary that came instead."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from proxy.lineage.branch import Branch, without
from proxy.lineage.emissions import SHORT
from proxy.lineage.keys import text_of
from proxy.lineage.search import Search
from proxy.transcript import HumanTurn, Key

_HEAD = 8  # keys among which a summary stands


def base_behind(branches: Sequence[Branch], search: Search) -> tuple[HumanTurn, ...]:
    """Gives the human words that these branches had and the body hasn't: those that all possible sources share."""
    bases = [base for branch in branches for base in _bases(branch, search)]
    if not bases:
        return ()
    shared = set.intersection(*({turn.key for turn in base} for base in bases))
    return without([turn for turn in bases[0] if turn.key in shared], search.request.keys)


def _bases(branch: Branch, search: Search) -> list[tuple[HumanTurn, ...]]:
    """What stood before the summary call, or before the end of the tail that came back."""
    snapshots = [
        snapshot.turns
        for emission in search.returned()
        for snapshot in emission.snapshots
        if snapshot.branch == branch.id
    ]
    if snapshots:
        return [max(snapshots, key=len)]  # asked for twice: the later one saw more
    here = {key.hash for key in search.request.keys if key.strong or key.length >= SHORT}
    last = max((place for place, key in enumerate(branch.keys, 1) if key.hash in here), default=len(branch.keys))
    return [branch.visible(last)]


def summaries_in(search: Search, branches: Iterable[Branch]) -> set[bytes]:
    """Gives the keys that carry the client's summary in a body whose history is gone.

    A text that carries a summary that we relayed, or an unknown one before the first known turn that isn't the newest
    user text; marks of a profile were seen before.
    """
    keys, messages = search.request.keys, search.request.transcript.messages
    carrying = {
        key.hash
        for key in keys[:_HEAD]
        if key.kind == "s"  # by a mark of the profile
        or (key.kind in "ua" and search.emissions.carries_summary(text_of(messages[key.message], key)))
        or (key.kind == "o" and any(search.emissions.opaque(text_of(messages[key.message], key))))
    }
    known = {key.hash for branch in branches for key in branch.keys}
    known |= {turn.key for branch in branches for turn in branch.base}
    newest = next((key for key in reversed(keys) if key.kind == "u"), None)
    for key in keys:
        if key.kind in "aco" or key.hash in known:
            break
        if key.kind == "u" and key is not newest and key.human is not None and not key.human.via:
            carrying.add(key.hash)
    return carrying


def named(keys: Sequence[Key], summaries: set[bytes]) -> tuple[Key, ...]:
    """Gives the keys with summaries named as such."""
    if not summaries:
        return tuple(keys)
    return tuple(
        replace(key, kind="s", human=None) if key.hash in summaries and key.kind in "ua" else key for key in keys
    )
