"""Checks on what was forwarded, against what the client sent."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import pairwise

from tests.cases.blocks import PART_ONE, PART_TWO, Block, read_blocks
from tests.cases.body import (
    Json,
    all_results,
    calls_of,
    items,
    newest_open_call,
    occurrences,
    places_of,
    raw_items,
    results_of,
    system_text,
    text_of,
    user_texts,
)
from tests.cases.checks import operation
from tests.cases.counting import tokens_of
from tests.cases.evidence import Evidence, split_reference
from tests.cases.faults import Malformed, Unmet, clip
from tests.cases.stored import active_facts

_SHORTENED = re.compile(r"\[?…|shortened|truncated|elided|excerpt|archived?\b|\bkept \d", re.IGNORECASE)
_MARKED = re.compile(r"\[unverified\]|not from the user|unverified", re.IGNORECASE)


@operation
def bytes_equal(evidence: Evidence, a: str, b: str) -> None:
    """Both references give the same bytes."""
    left, right = evidence.bytes_of(a), evidence.bytes_of(b)
    if left != right:
        place = next(
            (n for n, (x, y) in enumerate(zip(left, right, strict=False)) if x != y), min(len(left), len(right))
        )
        seen = right[place : place + 60].decode("utf-8", "replace")
        raise Unmet(f"{b} differs from {a} at byte {place} ({len(left)} against {len(right)} bytes): {clip(seen)}")


@operation
def json_equal(evidence: Evidence, a: str, b: str) -> None:
    """Both references give the same JSON value."""
    left, right = (json.dumps(evidence.value_of(one), sort_keys=True) for one in (a, b))
    if left != right:
        raise Unmet(f"{b} is {clip(right)}, not {clip(left)}")


@operation
def message_prefix(evidence: Evidence, short: str, long: str) -> None:
    """All messages of the short body are the first ones of the long body, byte for byte."""
    first, second = raw_items(evidence.bytes_of(short)), raw_items(evidence.bytes_of(long))
    if not first:
        raise Unmet(f"{short} has no messages")
    for place, raw in enumerate(first):
        if place >= len(second) or second[place] != raw:
            seen = second[place] if place < len(second) else "nothing"
            raise Unmet(f"message {place} of {long} is {clip(seen)}, in {short} it was {clip(raw)}")


@operation
def same_system(evidence: Evidence, a: str, b: str, allow_appended_pin_block: bool = False) -> None:
    """The system text is unchanged; a pin block behind it is fine when the case allows it."""
    before, after = system_text(evidence.value_of(a)), system_text(evidence.value_of(b))
    added = after[len(before) :].lstrip() if after.startswith(before) else after
    block = allow_appended_pin_block and added.startswith((PART_ONE, PART_TWO))
    if before != after and not (after.startswith(before) and block):
        raise Unmet(f"the system text of {b} isn't that of {a}: {clip(after)}")


@operation
def last_message_is(evidence: Evidence, of: str, tool_call_id: str) -> None:
    """The last message answers that call; `last` means the newest one, unless a call has that very name."""
    value = evidence.value_of(of)
    label = split_reference(of)[1]
    sent = evidence.value_of(f"client:{evidence.aliases.get(label, label)}")
    named = any(tool_call_id in calls_of(item) for item in items(sent))
    wanted = tool_call_id if named or tool_call_id != "last" else newest_open_call(sent)
    answered = [call for call, _ in results_of(items(value)[-1])] if items(value) else []
    if wanted not in answered:
        raise Unmet(f"the last message of {of} answers {answered or 'no call'}, not {wanted}")


@operation
def tool_result_ids(evidence: Evidence, of: str, equals: Sequence[str]) -> None:
    """The results stand in this order."""
    seen = [call for call, _ in all_results(evidence.value_of(of))]
    if seen != list(equals):
        raise Unmet(f"the results of {of} are {seen}, not {list(equals)}")


@operation
def tool_result_json_or_marked(evidence: Evidence, of: str, id: str) -> None:  # noqa: A002 (the case's own word)
    """The result is whole JSON, or says that it was shortened, or left as a whole into a block."""
    value = evidence.value_of(of)
    texts = [text for call, text in all_results(value) if call == id]
    if not texts:
        if read_blocks(user_texts(value)) is None:
            raise Unmet(f"{of} has no result of {id}, and no block stands for it")
        return
    for text in texts:
        try:
            json.loads(text)
        except ValueError:
            if _SHORTENED.search(text) is None:
                raise Unmet(f"the result of {id} is neither JSON nor marked as shortened: {clip(text)}") from None


@operation
def together_or_absent(evidence: Evidence, of: str, ids: Sequence[str]) -> None:
    """All of these items stand side by side in this order, or none is there."""
    places = places_of(evidence.value_of(of), ids)
    if all(place is None for place in places):
        return
    known = [place for place in places if place is not None]
    if len(known) != len(ids) or any(after - before not in (0, 1) for before, after in pairwise(known)):
        raise Unmet(f"the items {list(ids)} stand at {places} of {of}")


@operation
def roles_alternate(evidence: Evidence, of: str) -> None:
    """Users and assistants take turns, a user first; tool calls and their results belong to the assistant's turn."""
    turns = [item.get("role") for item in items(evidence.value_of(of)) if not calls_of(item) and not results_of(item)]
    spoken = [role for role in turns if role in ("user", "assistant")]
    expected = ["user", "assistant"] * len(spoken)
    if not spoken or spoken != expected[: len(spoken)]:
        raise Unmet(f"the roles of {of} are {spoken}")


@operation
def system_first_and_single(evidence: Evidence, of: str) -> None:
    """There is one system message, at the start."""
    roles = [item.get("role") for item in items(evidence.value_of(of))]
    places = [place for place, role in enumerate(roles) if role in ("system", "developer")]
    if places != [0]:
        raise Unmet(f"system messages of {of} stand at {places}")


@operation
def no_match(evidence: Evidence, of: str, regex: str) -> None:
    """The text doesn't match the expression."""
    try:
        found = re.search(regex, evidence.text_of(of))
    except re.error as error:
        raise Malformed(f"no_match: {error}") from error
    if found is not None:
        raise Unmet(f"{of} holds {clip(found[0])!r}")


@operation
def count_key(evidence: Evidence, of: str, key: str, equals: int) -> None:
    """The key occurs this often."""
    seen = occurrences(evidence.value_of(of), key)
    if seen != equals:
        raise Unmet(f"the key {key!r} occurs {seen} times in {of}, not {equals}")


@operation
def tokens_not_more(evidence: Evidence, a: str, b: str) -> None:
    """The first text has no more tokens than the second."""
    left, right = tokens_of(evidence.text_of(a)), tokens_of(evidence.text_of(b))
    if left > right:
        raise Unmet(f"{a} has {left} tokens, {b} has {right}")


@operation
def pin_field(evidence: Evidence, of: str, field: str, contains: str) -> None:
    """The field shows this text."""
    shown = _field(evidence, of, field)
    if contains not in shown:
        raise Unmet(f"{field} of {of} is {clip(shown)!r}, without {clip(contains)!r}")


@operation
def pin_field_not(evidence: Evidence, of: str, field: str, contains: str) -> None:
    """The field doesn't show this text."""
    shown = _field(evidence, of, field)
    if contains in shown:
        raise Unmet(f"{field} of {of} holds {clip(contains)!r}")


@operation
def pin_tokens_max(evidence: Evidence, of: str, max: int) -> None:  # noqa: A002 (the case's own word)
    """The inserted words of the user have at most so many tokens."""
    block = read_blocks(user_texts(evidence.value_of(of))) or Block()
    seen = tokens_of(block.part_one)
    if seen > max:
        raise Unmet(f"the pin text of {of} has {seen} tokens, more than {max}")


@operation
def claim_marked_or_absent(evidence: Evidence, of: str, text: str) -> None:
    """Outside the client's own messages each line with the claim marks it as unverified."""
    label = split_reference(of)[1]
    own = set(raw_items(evidence.bytes_of(f"client:{evidence.aliases.get(label, label)}")))
    for raw in raw_items(evidence.bytes_of(of)):
        if raw in own:
            continue
        for line in text_of(json.loads(raw)).split("\n"):
            if text in line and _MARKED.search(line) is None:
                raise Unmet(f"{of} states without a mark: {clip(line)}")


def _field(evidence: Evidence, of: str, field: str) -> str:
    """Gives what a body shows under a field of its blocks, or what stands in place in the client's own turns."""
    texts = user_texts(evidence.value_of(of))
    block = read_blocks(texts)
    if field == "current_goal":
        shown = block.current_goal if block is not None else None
        return shown if shown is not None else "\n".join(_in_place(evidence, texts, goal=True)[-1:])
    if field == "active_corrections":
        return block.active_corrections if block is not None else "\n".join(_in_place(evidence, texts, goal=False))
    raise Malformed(f"unknown block field {field!r}")


def _in_place(evidence: Evidence, texts: Sequence[str], *, goal: bool) -> list[Json]:
    facts = sorted(active_facts(evidence), key=lambda fact: int(fact.get("turn") or 0))
    return [
        fact["text"]
        for fact in facts
        if (fact.get("kind") == "goal") is goal and any(fact["text"] in text for text in texts)
    ]
