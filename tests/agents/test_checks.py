"""The checks of `make agents` notice what must not be."""

from __future__ import annotations

import json
from typing import Any

from agents import wire
from agents.checks import faults, judge
from agents.model import Got, kind_of
from agents.run import Run
from agents.runners.cline import AGENTS
from agents.script import END, GOAL, NOTES, Scenario, Step
from agents.tap import Sent

CALL = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
TOOLS = [{"type": "function", "function": {"name": "bash", "parameters": {}}}]
ASKS = {"role": "user", "content": GOAL}
CALLS = {"role": "assistant", "content": "I look.", "tool_calls": [CALL]}
PRINTS = {"role": "tool", "tool_call_id": "c1", "content": "row 1"}
SUMMARY = {"role": "user", "content": NOTES}
SCENARIO = Scenario("one", (GOAL,), ((Step(text=f"{END}: turn 1."),),), compacts=1)


def body(*messages: dict[str, Any], tools: bool = True) -> bytes:
    return json.dumps({"messages": messages, **({"tools": TOOLS} if tools else {})}).encode()


def run_of(*pairs: tuple[bytes, bytes]) -> Run:
    """What was sent at the agent and what came to the model."""
    sent = [Sent(number, "POST", "/v1/chat/completions", raw, 200) for number, (raw, _) in enumerate(pairs, 1)]
    got = [
        Got(number, kind_of("chat", json.loads(raw)), "chat", raw, refused=False)
        for number, (_, raw) in enumerate(pairs, 1)
    ]
    return Run(sent, got, [0], f"{END}: turn 1.", [GOAL], set(), verified=True)


WHOLE = body(ASKS, CALLS, PRINTS)
CUT = body(SUMMARY, CALLS, PRINTS)
RESTORED = body(ASKS, SUMMARY, CALLS, PRINTS)


def test_words_that_are_put_back_after_a_compaction_are_fine():
    result = judge(AGENTS[0], SCENARIO, run_of((WHOLE, WHOLE), (CUT, RESTORED)))
    assert result.wrong == []
    assert [str(share) for share in result.words] == ["1/1", "1/1"]


def test_words_that_are_missing_after_a_compaction_are_told():
    result = judge(AGENTS[0], SCENARIO, run_of((WHOLE, WHOLE), (CUT, CUT)))
    assert result.wrong == ["words missing after compaction 1: 0/1"]


def test_a_changed_side_call_is_told():
    order = {"role": "user", "content": "Please provide a concise summary of our conversation so far."}
    asked, changed = (body(*messages, order, tools=False) for messages in ((ASKS,), (ASKS, ASKS)))
    result = judge(AGENTS[0], SCENARIO, run_of((WHOLE, WHOLE), (asked, changed), (CUT, RESTORED)))
    assert result.wrong == ["a side call or a sub-agent's request was changed"]


def test_a_compaction_that_did_not_come_about_proves_nothing():
    assert judge(AGENTS[0], SCENARIO, run_of((WHOLE, WHOLE))).wrong == ["0 of 1 compactions came about"]


def test_a_fact_that_nobody_said_is_told():
    run = run_of((WHOLE, WHOLE), (CUT, RESTORED))
    run.facts = [GOAL, "row 1"]
    assert judge(AGENTS[0], SCENARIO, run).wrong == ["taken for the user's words: 'row 1'"]


def test_calls_and_results_are_paired_in_each_api():
    item = {"type": "function_call", "call_id": "c1", "name": "bash", "arguments": "{}"}
    use = {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "bash", "input": {}}]}
    told = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "row 1"}]}
    late = {"role": "user", "content": [{"type": "text", "text": "and"}, *told["content"]]}
    assert faults("chat", {"messages": [ASKS, CALLS, PRINTS]}) == []
    assert faults("chat", {"messages": [ASKS, PRINTS]}) == ["message 1 is a result without its call"]
    assert faults("responses", {"input": [item]}) == ["c1 has no output"]
    assert faults("messages", {"messages": [ASKS, use, told]}) == []
    assert faults("messages", {"messages": [ASKS, use, late]}) == ["message 2 has something before its results"]


def test_texts_are_found_in_every_form_of_content():
    parts = {"role": "user", "content": [{"type": "text", "text": GOAL}]}
    assert wire.users({"messages": [ASKS, parts]}) == [GOAL, GOAL]
    assert wire.users({"input": GOAL}) == [GOAL]
    assert wire.results({"messages": [PRINTS]}) == ["row 1"]
    assert wire.results({"input": [{"type": "function_call_output", "call_id": "c1", "output": "row 1"}]}) == ["row 1"]
