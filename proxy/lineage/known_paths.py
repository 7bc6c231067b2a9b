"""What a request shares with paths that are known, where nothing proves that it goes on from them."""

from __future__ import annotations

from proxy.lineage.search import Found, Search, exact


def unanswered(search: Search) -> Found | None:
    """Gives the one branch that still waits for its answer where this request goes on."""
    request = search.request
    place, holders = search.deepest
    if not 0 < place < len(request.keys) or request.keys[place].kind != "u":
        return None
    waiting = [branch for branch in holders if len(branch.keys) == place and not branch.answered]
    return Found(waiting, place, "chain", "unanswered opening") if len(waiting) == 1 else None


def whole_path(search: Search) -> Found | None:
    """Gives the one branch, with nothing cut off before it, whose whole path stands at the head."""
    request = search.request
    for place in range(search.deepest[0], 0, -1):
        if place == len(request.keys) or not any(key.kind in "ac" for key in request.keys[:place]):
            continue
        whole = [branch for branch in search.holders(place) if branch.requested <= place and not branch.base]
        whole = exact(whole, search.system)
        if whole:
            return Found(whole, place, "chain", "whole path") if len(whole) == 1 else None
    return None


def standing(search: Search, found: Found) -> Found:
    """Gives, of a session whose history seems gone, what stands whole at the head: that wasn't taken away.

    A path with something of the model's in it; who asks for a summary may leave out its end.
    """
    place, holders = search.deepest
    sessions = {branch.session for branch in found.branches}
    if found.place or not any(key.kind in "ac" for key in search.request.keys[:place]):
        return found
    whole = [b for b in holders if b.session in sessions and (b.requested <= place or search.request.side)]
    return Found(whole, place, "chain", "whole path") if whole else found


def walked(search: Search) -> Found | None:
    """Gives a whole known path, or a known one with an answer in it: inside a session that needs no proof."""
    place, holders = search.deepest
    if not place:
        return None
    whole = [branch for branch in holders if branch.requested <= place]
    if whole:
        return Found(whole, place, "chain", f"whole path {place}/{len(search.request.keys)}")
    akin = exact(holders, search.system)
    if akin and any(key.kind in "ac" for key in search.request.keys[:place]):
        return Found(akin, place, "chain", f"prefix {place}/{len(search.request.keys)}")
    return None
