"""What must hold in a run, read from the bytes at both ends: words, side calls, validity, errors."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from agents import wire
from agents.model import Got
from agents.run import Run
from agents.runners.base import Agent
from agents.script import CORRECTION, END, GOAL, NOTES, Scenario
from agents.tap import Sent
from proxy.compaction.invariants import CHAT, MESSAGES, Invariant
from proxy.compaction.item_invariants import RESPONSES
from proxy.dialects.known import all_dialects

ROLES = {"system", "developer", "user", "assistant", "tool"}
_INVARIANTS: dict[str, tuple[Invariant, ...]] = {"chat": CHAT, "responses": RESPONSES, "messages": MESSAGES}
_KEEP = "Keep these words of the user unchanged."  # what Goalkeeper says before the words that it adds
_BAD_FLAGS = {"failed_open", "invalid_rewrite", "plan_refused", "plan_quarantined", "unreadable_body", "pin_left_out"}


@dataclass(frozen=True, slots=True)
class Share:
    """So many of so many."""

    good: int = 0
    all: int = 0

    def __str__(self) -> str:
        """Gives "good/all"."""
        return f"{self.good}/{self.all}"

    @property
    def whole(self) -> bool:
        """Whether none is missing."""
        return self.good == self.all


@dataclass(slots=True)
class Result:
    """What came out of a run; it is fine when nothing is wrong."""

    agent: str
    scenario: str
    version: str = ""
    words: list[Share] = field(
        default_factory=list
    )  # main requests with all words that bind: before, after 1, after 2 …
    sides: Share = field(default_factory=Share)
    tasks: Share = field(default_factory=Share)
    valid: Share = field(default_factory=Share)
    compactions: int = 0  # the agent's own
    cuts: int = 0  # requests for which Goalkeeper compacted
    errors: list[str] = field(default_factory=list)  # at the agent
    wrong: list[str] = field(default_factory=list)  # why it isn't as it must be


@dataclass(frozen=True, slots=True)
class _Pair:
    """A request at the agent with the body that the model answered."""

    sent: Sent
    got: Got


def judge(agent: Agent, scenario: Scenario, run: Run) -> Result:
    """Holds a run against what must hold."""
    result = Result(agent.name, scenario.name)
    pairs = list(_pairs(run))
    main = [pair for pair in pairs if pair.got.kind == "main"]
    _words(result, scenario, pairs, main)
    sides = [pair for pair in pairs if pair.got.kind in ("summary", "title", "aux")]
    result.sides = _assisted(sides) if scenario.assists else _untouched(sides)
    result.tasks = _untouched([pair for pair in pairs if pair.got.kind == "sub"])
    result.cuts = sum(sent.told.get("x-goalkeeper-compaction") in ("compaction", "retry") for sent in run.sent)
    _validity(result, pairs)
    _errors(result, run, agent.refused_exit)
    _verdict(result, scenario, run)
    return result


def _pairs(run: Run) -> Iterator[_Pair]:
    sent = {one.number: one for one in run.sent}
    newest = {got.number: got for got in run.got if got.number in sent}
    return (_Pair(sent[number], got) for number, got in sorted(newest.items()))


def _words(result: Result, scenario: Scenario, pairs: list[_Pair], main: list[_Pair]) -> None:
    """Counts main requests that hold what was said until then; a new count begins at each compaction of the agent."""
    known: set[str] = set()
    counts = [Counter[bool]()]
    length, carried = 0, False
    by_number = {pair.sent.number: pair for pair in main}
    wanted = {GOAL, CORRECTION} & {*scenario.said, scenario.steered}
    for pair in pairs:
        body = json.loads(pair.sent.raw)
        known |= {words for words in wanted if words in _human(body)}
        if pair.sent.number not in by_number:
            continue
        now, carries = len(wire.items(body)), NOTES in "\n".join(turn.text for turn in wire.turns(body))
        if now < length or (carries and not carried):
            counts.append(Counter())
        length, carried = now, carries
        there = _human(pair.got.body)
        counts[-1][all(words in there for words in known)] += 1
    result.words = [Share(count[True], count.total()) for count in counts]
    result.compactions = len(counts) - 1
    if wanted - known:
        result.wrong.append(f"never sent by the agent: {sorted(wanted - known)}")


def _human(body: wire.Body) -> str:
    """All places where words of the user can stand; results too, since some agents put interruptions there."""
    return "\n".join([*wire.users(body), *wire.results(body)])


def _untouched(pairs: list[_Pair]) -> Share:
    return Share(sum(pair.sent.raw == pair.got.raw for pair in pairs), len(pairs))


def _assisted(pairs: list[_Pair]) -> Share:
    """Counts side calls that went out as they came, and orders to summarise that carry all that binds besides."""
    good = 0
    for pair in pairs:
        words = [said for said in (GOAL, CORRECTION) if said in _human(json.loads(pair.sent.raw))]
        added = wire.users(pair.got.body)[-1].partition(_KEEP)[2]  # what stands before may quote the conversation
        summary = pair.got.kind == "summary"
        good += all(said in added for said in words) and bool(added) if summary else pair.got.raw == pair.sent.raw
    return Share(good, len(pairs))


# --- validity --------------------------------------------------------------------------------------------------------


def _validity(result: Result, pairs: list[_Pair]) -> None:
    good = 0
    checked = [pair for pair in pairs if pair.got.api in _INVARIANTS]
    for pair in checked:
        found = faults(pair.got.api, pair.got.body) + _new_faults(pair)
        good += not found
        result.wrong += [f"request {pair.sent.number} ({pair.got.kind}): {fault}" for fault in found[:2]]
    result.valid = Share(good, len(checked))


def _new_faults(pair: _Pair) -> list[str]:
    """Faults that Goalkeeper's own rules see in the forwarded body and not in the agent's."""
    dialect = all_dialects()[pair.got.api]
    ours, theirs = (dialect.parse(raw).messages for raw in (pair.got.raw, pair.sent.raw))
    return [fault for rule in _INVARIANTS[pair.got.api] for fault in sorted(rule.faults(ours) - rule.faults(theirs))]


def faults(api: str, body: wire.Body) -> list[str]:
    """Gives what an upstream of this API would refuse."""
    found = wire.items(body)
    return {"chat": _chat_faults, "responses": _item_faults, "messages": _block_faults}[api](found)


def _chat_faults(messages: list[wire.Item]) -> list[str]:
    found: list[str] = []
    waiting: list[str] = []
    for place, message in enumerate(messages):
        role = message.get("role")
        if role not in ROLES:
            found.append(f"message {place} has the role {role!r}")
        if role == "tool":
            if message.get("tool_call_id") not in waiting:
                found.append(f"message {place} is a result without its call")
            waiting = [call for call in waiting if call != message.get("tool_call_id")]
            continue
        found += [f"message {place} comes before the result of {call}" for call in waiting]
        waiting = [call["id"] for call in message.get("tool_calls") or []]
        if role == "assistant" and not waiting and not message.get("content"):
            found.append(f"message {place} is empty")
    return found + [f"{call} has no result" for call in waiting]


def _item_faults(items: list[wire.Item]) -> list[str]:
    found: list[str] = []
    waiting: list[str] = []
    for place, item in enumerate(items):
        kind = str(item.get("type", "message"))
        if kind.endswith("_call_output"):
            if item["call_id"] not in waiting:
                found.append(f"item {place} is an output without its call")
            waiting = [call for call in waiting if call != item["call_id"]]
        elif kind in ("function_call", "custom_tool_call", "local_shell_call"):
            waiting.append(item["call_id"])
    return found + [f"{call} has no output" for call in waiting]


def _block_faults(messages: list[wire.Item]) -> list[str]:
    found: list[str] = []
    waiting: list[str] = []
    for place, message in enumerate(messages):
        content = message["content"] if isinstance(message.get("content"), list) else []
        kinds = [block.get("type") for block in content]
        results = [block["tool_use_id"] for block in content if block.get("type") == "tool_result"]
        if message.get("role") not in ("user", "assistant"):
            found.append(f"message {place} has the role {message.get('role')!r}")
        if sorted(results) != sorted(waiting):
            found.append(f"message {place} has results {results} for calls {waiting}")
        if kinds[: len(results)] != ["tool_result"] * len(results):
            found.append(f"message {place} has something before its results")
        waiting = [block["id"] for block in content if block.get("type") == "tool_use"]
    return found + [f"{call} has no result" for call in waiting]


# --- verdict ---------------------------------------------------------------------------------------------------------


def _errors(result: Result, run: Run, refused_exit: int) -> None:
    """Counts what the agent ran into; what the scenario refused is no error."""
    refused = {got.number for got in run.got if got.refused}
    told = any(sent.status >= 400 for sent in run.sent if sent.number in refused)
    usual = (0, refused_exit) if told else (0,)
    result.errors = [
        f"turn {number} ended with {code}" for number, code in enumerate(run.exits, 1) if code not in usual
    ]
    for sent in run.sent:
        if sent.method == "POST" and sent.status >= 400 and sent.number not in refused:
            result.errors.append(f"request {sent.number} {sent.path}: {sent.status}")


def _verdict(result: Result, scenario: Scenario, run: Run) -> None:
    wrong = result.wrong
    wrong += [
        f"words missing after compaction {place}: {share}"
        for place, share in enumerate(result.words)
        if not share.whole
    ]
    if not result.sides.whole or not result.tasks.whole:
        wrong.append("a side call or a sub-agent's request was changed")
    if result.errors:
        wrong.append(result.errors[0])
    if f"{END}: turn {len(scenario.turns)}." not in run.output:
        wrong.append("the agent didn't show its last answer")
    if result.compactions < scenario.compacts:
        wrong.append(f"{result.compactions} of {scenario.compacts} compactions came about")
    if scenario.cuts and not result.cuts:
        wrong.append("Goalkeeper didn't compact")
    if scenario.task and not result.tasks.all:
        wrong.append("no sub-agent came about")
    foreign = [fact for fact in run.facts if fact not in (*scenario.said, scenario.steered)]
    wrong += [f"taken for the user's words: {fact[:80]!r}" for fact in foreign[:3]]
    wrong += [f"flag {flag}" for flag in sorted(run.flags & _BAD_FLAGS)]
    if not run.verified:
        wrong.append("goalkeeper verify finds problems")
