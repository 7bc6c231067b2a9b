"""Checks on what the proxy stored: facts, pins, receipts, sessions, archive, files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tests.cases.body import all_results, message_texts, text_of, user_texts
from tests.cases.body import items as items_of
from tests.cases.checks import operation
from tests.cases.evidence import Evidence
from tests.cases.faults import Malformed, Unmet, clip
from tests.cases.stored import active_facts, all_facts, holds

CUTS = ("compaction", "retry")  # receipts whose request was compacted


@operation
def goal_equals(evidence: Evidence, text: str) -> None:
    """The newest stored active goal is exactly this."""
    goals = [fact for fact in active_facts(evidence) if fact.get("kind") == "goal"]
    newest = max(goals, key=lambda fact: int(fact.get("turn") or 0), default=None)
    if newest is None or newest.get("text") != text:
        raise Unmet(f"the active goal is {clip(str(newest.get('text')))!r}" if newest else "no active goal is stored")


@operation
def facts_absent(evidence: Evidence, text: str) -> None:
    """No active fact or pin holds this text."""
    found = [fact for fact in active_facts(evidence) if holds(fact, text)]
    if found:
        raise Unmet(f"an active {found[0].get('kind')} holds {clip(text)!r}: {clip(str(found[0].get('text')))!r}")


@operation
def facts_count(evidence: Evidence, equals: int, kind: str | None = None) -> None:
    """So many active facts of this kind are stored."""
    found = [fact for fact in active_facts(evidence) if kind in (None, fact.get("kind"))]
    if len(found) != equals:
        texts = "; ".join(clip(str(fact.get("text")), 60) for fact in found[:4])
        raise Unmet(f"{len(found)} active facts of kind {kind or 'any'}, not {equals}: {texts}")


@operation
def facts_count_min(evidence: Evidence, min: int, kind: str | None = None) -> None:  # noqa: A002 (the case's word)
    """At least so many facts of this kind are stored, whatever their status."""
    found = {fact.get("text") for fact in all_facts(evidence) if kind in (None, fact.get("kind"))}
    if len(found) < min:
        raise Unmet(f"{len(found)} distinct facts of kind {kind or 'any'}, fewer than {min}")


@operation
def facts_count_same(evidence: Evidence, after: str) -> None:
    """The number of active facts after this request is that of the end; after the last one, that of before it."""
    if after not in evidence.fact_counts:
        raise Malformed(f"facts_count_same: no request is called {after!r}")
    before, behind = evidence.fact_counts[after]
    now = len(active_facts(evidence))
    earlier = before if after == list(evidence.fact_counts)[-1] else behind
    if earlier != now:
        raise Unmet(f"{earlier} active facts became {now}")


@operation
def facts_status(evidence: Evidence, text: str, status_in: Sequence[str]) -> None:
    """Each fact with this text has one of these statuses."""
    found = [fact for fact in all_facts(evidence) if holds(fact, text)]
    if not found:
        raise Unmet(f"no fact holds {clip(text)!r}")
    for fact in found:
        if fact.get("status") not in status_in:
            raise Unmet(f"the fact {clip(str(fact.get('text')))!r} is {fact.get('status')}, not {list(status_in)}")


@operation
def facts_superseded(evidence: Evidence, old_contains: str, new_contains: str) -> None:
    """An older fact names the newer one as what superseded it."""
    facts = all_facts(evidence)
    newer = {fact.get(key) for fact in facts if holds(fact, new_contains) for key in ("id", "pin")} - {None, ""}
    older = [fact for fact in facts if holds(fact, old_contains)]
    if not older or not newer:
        raise Unmet(f"no fact holds {clip(new_contains if older else old_contains)!r}")
    if not any(fact.get("superseded_by") in newer for fact in older):
        raise Unmet(f"{clip(str(older[0].get('text')))!r} isn't superseded by the fact with {clip(new_contains)!r}")


@operation
def facts_parse_ok(evidence: Evidence) -> None:
    """Each line of the JSONL views parses, and the last one is whole."""
    views = {name: data for name, data in evidence.stored.files.items() if name.endswith(".jsonl")}
    if not views:
        raise Unmet("the data folder holds no JSONL view of the facts")
    for name, data in views.items():
        if data and not data.endswith(b"\n"):
            raise Unmet(f"{name} ends with half a line")
        for number, line in enumerate(data.split(b"\n")[:-1], 1):
            try:
                json.loads(line)
            except ValueError as error:
                raise Unmet(f"{name} line {number}: {error}") from error


@operation
def no_files_outside(evidence: Evidence, dir: str) -> None:  # noqa: A002 (the case's own word)
    """Nothing was written outside the data folder."""
    if dir != "data_dir":
        raise Malformed(f"no_files_outside knows data_dir, not {dir!r}")
    if evidence.stored.strays:
        raise Unmet(f"files outside the data folder: {', '.join(map(clip, evidence.stored.strays[:5]))}")


@operation
def archive_roundtrip(evidence: Evidence, for_: str) -> None:
    """An archive id that stands in a forwarded body gives back the original: of the goal, a call, a request, a text."""
    wanted = _originals(evidence, for_)
    ids = evidence.archive_ids
    if not ids:
        raise Unmet("no forwarded body names an archive id")
    if not any(evidence.stored.archive.get(one) in wanted for one in ids):
        raise Unmet(f"none of the archive ids {ids[:5]} gives the original text back")


@operation
def transcript_contains(evidence: Evidence, text: str) -> None:
    """The stored transcript holds this text."""
    evidence.door("transcript")
    if not any(text in text_of(message) for message in evidence.stored.transcript):
        raise Unmet(f"the stored transcript doesn't hold {clip(text)!r}")


@operation
def transcript_block(evidence: Evidence, id: str, input: Any) -> None:  # noqa: A002 (the case's own words)
    """The stored transcript holds this tool call with this input."""
    evidence.door("transcript")
    calls = [call for message in evidence.stored.transcript for call in message.get("calls") or ()]
    inputs = [_input(call) for call in calls if call.get("id") == id]
    if not inputs:
        raise Unmet(f"the stored transcript has no call {id}")
    if input not in inputs:
        raise Unmet(f"the call {id} is stored with {clip(str(inputs[0]))}")


def _input(call: Mapping[str, Any]) -> Any:
    """A call's input as a JSON value; arguments that aren't JSON stay a text."""
    try:
        return json.loads(call["arguments"])
    except ValueError:
        return call["arguments"]


@operation
def sessions(evidence: Evidence, distinct: Sequence[Sequence[str]]) -> None:
    """Requests in one list share a session, requests in different lists don't."""
    _grouped(distinct, {label: _session(evidence, label) for group in distinct for label in group}, "session")


@operation
def branches(evidence: Evidence, distinct: Sequence[Sequence[str]], of: str = "") -> None:
    """Requests in one list share a branch, requests in different lists don't."""
    del of  # the session id under which the client sends them: the labels already say which requests are meant
    found = {label: str(evidence.receipt(label).get("branch") or "") for group in distinct for label in group}
    _grouped(distinct, found, "branch")


@operation
def receipt_field(evidence: Evidence, for_: str, field: str, in_: Sequence[Any]) -> None:
    """The receipt's field has one of these values."""
    value = evidence.receipt(for_).get(field)
    if value not in in_:
        raise Unmet(f"{field} on the receipt of {for_} is {value!r}, not one of {list(in_)}")


@operation
def receipt_flag(evidence: Evidence, for_: str, flag: str) -> None:
    """The receipt carries this flag."""
    flags = evidence.receipt(for_).get("flags") or []
    if flag not in flags:
        raise Unmet(f"the receipt of {for_} has the flags {list(flags)}, not {flag}")


@operation
def receipts_distinct(evidence: Evidence, count: int, of: str) -> None:
    """So many entries of this sort stand on the receipts."""
    evidence.door("receipts")
    if of == "tool_calls":
        seen: set[tuple[Any, ...]] = {
            (receipt.get("id"), call.get("id"), call.get("name"), call.get("arguments"), call.get("origin"))
            for receipt in evidence.stored.receipts
            for call in receipt.get("calls") or ()
        }
    elif of in ("receipts", "requests"):
        seen = {(receipt.get("id"),) for receipt in evidence.stored.receipts}
    else:
        raise Malformed(f"receipts_distinct knows tool_calls and receipts, not {of!r}")
    if len(seen) != count:
        raise Unmet(f"{len(seen)} distinct entries of {of}, not {count}")


@operation
def compactions_max(evidence: Evidence, max: int) -> None:  # noqa: A002 (the case's own word)
    """The receipts tell of at most so many compactions."""
    seen = _compactions(evidence)
    if seen > max:
        raise Unmet(f"{seen} compactions, more than {max}")


@operation
def compactions_min(evidence: Evidence, min: int) -> None:  # noqa: A002 (the case's own word)
    """The receipts tell of at least so many compactions."""
    seen = _compactions(evidence)
    if seen < min:
        raise Unmet(f"{seen} compactions, fewer than {min}")


def _compactions(evidence: Evidence) -> int:
    evidence.door("receipts")
    return sum(receipt.get("compaction") in CUTS for receipt in evidence.stored.receipts)


def _originals(evidence: Evidence, what: str) -> set[str]:
    bodies = {label: evidence.value_of(f"client:{label}") for label in evidence.exchanges}
    results = {call: text for body in bodies.values() for call, text in all_results(body)}
    if what == "goal":
        return set(next((texts[:1] for texts in map(user_texts, bodies.values()) if texts), []))
    if what in results:
        return {results[what]}
    if what in bodies:
        return {text for item in items_of(bodies[what]) for text in message_texts(item)} - {""}
    return {what}


def _session(evidence: Evidence, label: str) -> str:
    header = evidence.exchange(label).header("x-goalkeeper-session")
    return header or str(evidence.receipt(label).get("session") or "")


def _grouped(groups: Sequence[Sequence[str]], found: dict[str, str], what: str) -> None:
    owners: dict[str, str] = {}
    for group in groups:
        ids = {found[label] for label in group}
        if len(ids) != 1 or "" in ids:
            raise Unmet(f"{', '.join(group)} don't share one {what}: {', '.join(sorted(ids)) or 'none'}")
        one = ids.pop()
        if one in owners:
            raise Unmet(f"{group[0]} and {owners[one]} share the {what} {one}")
        owners[one] = group[0]
