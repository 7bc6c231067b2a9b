"""A client that cut its history without a model says so, and lists what the model did: that can be checked.

The opening alone proves nothing, since others may have said the same words. A talk is taken for the one that was cut
when the note repeats its newest words, and more than twice as much of it as of any other that began in the same way.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from proxy.lineage.branch import Branch, Session
from proxy.lineage.emissions import LEAST_ORDINARY, SHORT
from proxy.lineage.index import PLACES
from proxy.lineage.keys import normal, text_key
from proxy.lineage.search import Search

_BORDER = re.compile(r"\n\s*\n|\n-{3,}\n")
_TAG = re.compile(r"</?[A-Za-z_]{3,20}>")

Told = dict[bytes | str, int]  # a piece of the note, and its characters


def by_notice(search: Search) -> list[Branch]:
    """Gives the branches of the one session that the note tells of; of several where that isn't clear; else none."""
    request = search.request
    if not request.notice or not request.keys or request.keys[0].kind != "u":
        return []
    known = search.index.chain.get(request.chain[0])
    if len(known) >= PLACES:
        return []  # there may be more talks with this opening than are remembered
    branches = [b for b in known if search.fits(b) and not b.sub and b.system.akin(search.system)]
    told = _evidence(search, branches)
    weights = {session: sum(pieces.values()) for session, pieces in told.items()}
    best = max(weights, key=weights.__getitem__, default=None)
    if best is None or weights[best] < LEAST_ORDINARY:
        return []
    rivals = {one for one in told if weights[one] * 2 > weights[best] or told[one].keys() - told[best].keys()}
    found = [branch for branch in branches if branch.session is best or branch.session in rivals]
    return found if len(rivals) > 1 or _newest_is_told(found, search) else []


def _evidence(search: Search, branches: Sequence[Branch]) -> dict[Session, Told]:
    """Gives what of the note each session's model said, or gave to its tools."""
    notice = search.request.notice
    pieces = _pieces(notice)
    answers = {one.id: (one.branches, one.total) for one in search.emissions.answers_in(notice)}
    told: dict[Session, Told] = {}
    for branch in branches:
        own: Told = {text_key("u", text): len(text) for text in pieces if text_key("u", text) in branch.prompts}
        own |= {text_key("a", text): len(text) for text in pieces if text_key("a", text) in branch.emitted}
        own |= {name: total for name, (owners, total) in answers.items() if branch.id in owners}
        told.setdefault(branch.session, {}).update(own)
    return told


def _newest_is_told(branches: Sequence[Branch], search: Search) -> bool:
    """Whether the last words of the model stand in the note or behind it, where it said any."""
    for branch in sorted(branches, key=lambda one: one.used, reverse=True):
        said = next((key for key in reversed(branch.keys) if key.kind == "a" and key.length >= SHORT), None)
        if said is not None:
            kept = any(key.hash == said.hash for key in search.request.keys)
            return kept or normal(said.closing) in normal(search.request.notice)
    return True


def _pieces(notice: str) -> set[str]:
    """Gives paragraphs, with and without their headings, and lines: whatever an answer or an argument may stand as."""
    found: set[str] = set()
    for paragraph in _BORDER.split(_TAG.sub("", notice)):
        lines = paragraph.strip().split("\n")
        found.update((paragraph, "\n".join(lines[1:]), *lines))
    return {words for text in found if len(words := normal(text)) >= SHORT}
