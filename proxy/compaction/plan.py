"""The plan of one request: what is put back, what leaves, and which insertions stand where.

A pure function of the request, the branch's memory and the limits. Own compaction and restore make the same kind of
object, an `Insertion`; what was inserted once is replayed, never made anew.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from proxy.compaction.condensed import swapped
from proxy.compaction.cut import make_cut
from proxy.compaction.draft import Draft, Memory, Policy, Tools
from proxy.compaction.insertion import Insertion
from proxy.compaction.invariants import validate
from proxy.compaction.presence import Presence
from proxy.compaction.recall import recalled
from proxy.compaction.restore import added, restored
from proxy.compaction.rewrite import Piece, applicable, apply
from proxy.compaction.thinking import visible, waits
from proxy.compaction.view import View

_SURELY = 1.05  # the floor of recent turns holds in the upstream's own count, and ours may be some percent off


class Plan(msgspec.Struct, frozen=True):
    """What goes out. `pieces` is empty when the client's own bytes go out."""

    insertions: tuple[Insertion, ...]
    fresh: tuple[Insertion, ...]
    pieces: tuple[Piece, ...]
    presence: Presence
    estimate_in: int  # ours, uncalibrated
    estimate_out: int
    tokens_in: int  # calibrated
    tokens_out: int
    kind: str = ""  # "", restore, compaction
    flags: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    stuck: bool = False


def make_plan(
    view: View, branch: str, memory: Memory, policy: Policy, tools: Tools, *, aim: int = 0, bare: bool = False
) -> Plan:
    """Decides what goes out. `aim` > 0: an upstream refused the body for its length, get under so many tokens.

    `bare` plans nothing new and only replays what stands. Raises InvalidRewrite when the result breaks an invariant.
    """
    draft = draft_of(view, branch, memory, policy, tools, aim=aim)
    untouched = round(draft.view.total() * policy.ratio)
    stuck = False
    if not bare:
        draft = added(restored(recalled(swapped(draft))))
        if draft.over():
            draft, stuck = _compacted(draft)
    return _finished(draft, untouched, stuck=stuck)


def draft_of(view: View, branch: str, memory: Memory, policy: Policy, tools: Tools, *, aim: int = 0) -> Draft:
    """The draft with what stands already, before anything new."""
    usable = [one for one in memory.insertions if one.id not in memory.refused]
    view = visible(view)
    return Draft(
        view, policy, memory, tools, branch, applicable(usable, view),
        limit=aim or policy.budget.trigger, floor=_floor(policy, aim), forced=bool(aim),
    )  # fmt: skip


def _floor(policy: Policy, aim: int) -> int:
    size = min(policy.budget.size, aim) if aim and policy.budget.size else aim or policy.budget.size
    return int(policy.keep_recent * size * _SURELY)


def _compacted(draft: Draft) -> tuple[Draft, bool]:
    """Cuts; when no cut helps, says so and waits until the transcript has grown before it tries again."""
    memory = draft.memory
    if waits(draft.view, memory.insertions, memory.refused):
        return _flagged(
            draft, "compaction_not_possible", "signed reasoning can leave at the user's next turn only"
        ), False
    waiting = memory.stuck_at and len(draft.view.keys) < memory.stuck_at + 10 and not draft.forced
    if waiting:
        return _flagged(draft, "compaction_not_possible"), True
    before = draft.predict()
    cut = make_cut(draft)
    after = cut.predict(cut.insertions) if cut is not None else before
    if cut is None or (after > draft.limit and after > before * 4 // 5):
        return _flagged(draft, "compaction_not_possible", "no cut brings the body under its budget"), True
    if after > draft.limit:
        return _flagged(cut, "compaction_not_possible", "the newest turns alone exceed the budget"), True
    return cut, False


def _flagged(draft: Draft, flag: str, note: str = "") -> Draft:
    notes = (*draft.notes, note) if note else draft.notes
    return replace(draft, flags=tuple(dict.fromkeys((*draft.flags, flag))), notes=notes)


def _finished(draft: Draft, untouched: int, *, stuck: bool) -> Plan:
    view, policy = draft.view, draft.policy
    pieces: tuple[Piece, ...] = ()
    if draft.insertions:
        pieces = apply(draft.insertions, view, draft.tools.writer, alternate=policy.strict)
        ours = [piece.source if piece.source and piece.untouched else draft.tools.read(piece.raw) for piece in pieces]
        validate(policy.invariants, ours, view.messages)
    reasons = {one.reason for one in draft.fresh} - {"recall"}
    kind = "compaction" if "compaction" in reasons else "restore" if reasons else ""
    return Plan(
        insertions=draft.insertions,
        fresh=draft.fresh,
        pieces=pieces,
        presence=draft.presence(),
        estimate_in=view.total(),
        estimate_out=draft.estimate(),
        tokens_in=untouched,
        tokens_out=draft.predict() if not draft.fresh else draft.predict(draft.insertions),
        kind=kind,
        flags=draft.flags,
        notes=draft.notes,
        stuck=stuck,
    )
