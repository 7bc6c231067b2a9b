"""Signed reasoning, against a model that checks what its signatures bind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from proxy.compaction.thinking import LEFT_OUT, asking_to_drop, is_refusal, stripped, with_beta
from tests.signing import BETA, GOAL, Agent, Proxy, Sent, SigningModel, begun, proxied, reasoning, words

RULE = "No, never touch the folder legacy/; leave it exactly as it is."
BUDGET = 6_000


def asks(sent: Sent) -> bool:
    """Whether the forwarded request asks the model to drop what no longer matches."""
    binding = sent.body["thinking"].get("block_binding")
    assert (binding is None) == (BETA not in sent.headers["anthropic-beta"])
    return binding is not None


async def until_cut(proxy: Proxy, agent: Agent, most: int = 12) -> Sent:
    """Works until the proxy compacts; gives that exchange."""
    for _ in range(most):
        (sent,) = await proxy.work(agent, 1)
        if sent.receipt["compaction"]:
            return sent
    pytest.fail("nothing was compacted")


async def test_a_body_with_reasoning_that_fits_goes_out_as_it_came(tmp_path: Path) -> None:
    async with proxied(tmp_path, SigningModel()) as proxy:
        agent = begun()
        done = await proxy.work(agent, 4, size=100)
        assert not any(sent.receipt["changed"] for sent in done)
        assert proxy.model.refusals == 0


async def test_a_cut_asks_the_model_to_drop_what_no_longer_matches_and_keeps_every_block(tmp_path: Path) -> None:
    async with proxied(tmp_path, SigningModel(), budget=BUDGET) as proxy:
        agent = begun()
        cut = await until_cut(proxy, agent)
        assert (cut.status, len(cut.forwarded)) == (200, 1)
        assert asks(cut)
        assert "some-beta-2026-01-01" in cut.headers["anthropic-beta"]
        kept = cut.body["messages"][1:]
        assert kept == json.loads(agent.body())["messages"][-len(kept) - 2 : -2]
        assert proxy.model.dropped == [block["signature"] for block in reasoning(kept)]


async def test_after_a_cut_new_reasoning_stays_valid_and_the_choice_is_repeated(tmp_path: Path) -> None:
    async with proxied(tmp_path, SigningModel(), budget=BUDGET) as proxy:
        agent = begun()
        await until_cut(proxy, agent)
        old = set(proxy.model.dropped)
        await proxy.restart()
        done = await proxy.work(agent, 3, size=300)
        assert [sent.status for sent in done] == [200] * 3
        assert all(asks(sent) for sent in done)
        assert set(proxy.model.dropped) <= old
        assert proxy.model.refusals == 0


async def test_where_the_model_drops_nothing_the_cut_waits_for_the_users_turn(tmp_path: Path) -> None:
    async with proxied(tmp_path, SigningModel(can_drop=False), budget=BUDGET) as proxy:
        agent = begun()
        refused = await until_refused(proxy, agent)
        assert refused.status == 200
        assert refused.forwarded[-1] == before(agent)
        waiting = await proxy.work(agent, 2)
        assert [len(sent.forwarded) for sent in waiting] == [1, 1]
        assert "compaction_not_possible" in waiting[-1].receipt["flags"]
        proxy.model.calls = False
        await proxy.work(agent, 1)
        agent.say(RULE)
        cut = await proxy.send(agent)
        assert (cut.status, len(cut.forwarded), cut.receipt["compaction"]) == (200, 1, "compaction")
        assert reasoning(cut.body["messages"]) == []
        assert not asks(cut)
        assert GOAL in words(cut)
        assert RULE in words(cut)


async def test_reasoning_that_left_stays_away_and_what_is_thought_later_stays_valid(tmp_path: Path) -> None:
    async with proxied(tmp_path, SigningModel(can_drop=False), budget=BUDGET) as proxy:
        agent = begun()
        await until_refused(proxy, agent)
        proxy.model.calls = False
        await proxy.work(agent, 1)
        agent.say(RULE)
        cut = await proxy.send(agent)
        agent.take(cut.answer, 0)
        proxy.model.calls, seen = True, proxy.model.refusals
        agent.say("Go on with the next module.")
        await proxy.restart()
        done = await proxy.work(agent, 3, size=300)
        assert [sent.status for sent in done] == [200] * 3
        assert proxy.model.refusals == seen
        assert len(reasoning(done[-1].body["messages"])) == 3
        assert done[-1].body["messages"][: len(cut.body["messages"])] == cut.body["messages"]
        assert proxy.problems() == []


async def test_a_summary_is_asked_for_in_this_dialect_and_stands_in_the_block(tmp_path: Path) -> None:
    async with proxied(tmp_path, SigningModel(), budget=BUDGET, summarizer={"when": "inline"}) as proxy:
        cut = await until_cut(proxy, begun())
        (question,) = proxy.model.questions
        assert [message["role"] for message in question["messages"]] == ["user"]
        assert proxy.model.summary in words(cut)
        assert "compaction_failed" not in cut.receipt["flags"]


async def test_with_reasoning_switched_off_the_kept_blocks_leave_at_once(tmp_path: Path) -> None:
    async with proxied(tmp_path, SigningModel(can_drop=False), budget=BUDGET) as proxy:
        agent = begun()
        await proxy.work(agent, 3)
        agent.fields["thinking"] = {"type": "disabled"}
        cut = await until_cut(proxy, agent)
        assert (cut.status, proxy.model.refusals) == (200, 0)
        assert reasoning(cut.body["messages"]) == []


async def test_words_that_the_provider_compacted_away_stand_behind_the_newest_results(tmp_path: Path) -> None:
    async with proxied(tmp_path, SigningModel()) as proxy:
        agent = begun()
        await proxy.work(agent, 2, size=100)
        block = {"type": "compaction", "content": "Two modules were read.", "signature": "c2lnbmVk"}
        agent.messages[-2]["content"].insert(0, block)
        agent.messages[-2]["content"] = [b for b in agent.messages[-2]["content"] if b["type"] != "thinking"]
        agent.messages[1]["content"] = [b for b in agent.messages[1]["content"] if b["type"] != "thinking"]
        first = await proxy.send(agent)
        newest = first.body["messages"][-1]["content"]
        assert [one["type"] for one in newest] == ["tool_result", "text"]
        assert GOAL in newest[1]["text"]
        assert first.body["messages"][:-1] == agent.messages[:-1]
        agent.take(first.answer, 100)
        done = await proxy.work(agent, 2, size=100)
        assert all(sent.body["messages"][: len(first.body["messages"])] == first.body["messages"] for sent in done)
        assert all(words(sent).count(GOAL) == 2 for sent in done)
        assert proxy.model.refusals == 0


async def test_the_providers_compaction_on_demand_passes_and_its_block_stays_in_front_of_all(tmp_path: Path) -> None:
    async with proxied(tmp_path, SigningModel()) as proxy:
        agent = begun()
        await proxy.work(agent, 3, size=100)
        agent.fields["compaction"] = {"type": "summarize"}
        asked = await proxy.send(agent)
        assert asked.forwarded == (agent.body(),)
        del agent.fields["compaction"]
        agent.messages = [{"role": "assistant", "content": asked.answer["content"]}]
        agent.say("Go on with the next module.")
        first = await proxy.send(agent)
        assert first.body["messages"][0] == agent.messages[0]
        assert words(first).startswith("Go on with the next module.")
        assert GOAL in words(first)
        agent.take(first.answer, 100)
        done = await proxy.work(agent, 2, size=100)
        assert all(sent.body["messages"][:2] == first.body["messages"] for sent in done)
        assert {sent.receipt["session"] for sent in (first, *done)} == {asked.receipt["session"]}
        assert proxy.model.refusals == 0


async def test_a_word_added_by_hand_goes_behind_the_newest_results_and_stays_there(tmp_path: Path) -> None:
    async with proxied(tmp_path, SigningModel()) as proxy:
        agent = begun()
        done = await proxy.work(agent, 2, size=100)
        proxy.pin(done[-1].receipt["session"], "Use tabs.")
        first = await proxy.send(agent)
        assert [one["type"] for one in first.body["messages"][-1]["content"]] == ["tool_result", "text"]
        assert first.body["messages"][:-1] == agent.messages[:-1]
        agent.take(first.answer, 100)
        later = await proxy.send(agent)
        assert later.body["messages"][: len(first.body["messages"])] == first.body["messages"]
        assert proxy.model.refusals == 0


async def test_where_the_newest_message_is_not_the_users_a_lost_word_waits_and_the_receipt_says_so(
    tmp_path: Path,
) -> None:
    async with proxied(tmp_path, SigningModel(calls=False)) as proxy:
        agent = begun()
        first = await proxy.send(agent)
        agent.take(first.answer, 0)
        agent.say("Go on.")
        agent.messages.append({"role": "assistant", "content": "The next module"})
        proxy.pin(first.receipt["session"], "Use tabs.")
        sent = await proxy.send(agent)
        assert "restore_waits" in sent.receipt["flags"]
        assert sent.forwarded == (agent.body(),)


async def until_refused(proxy: Proxy, agent: Agent, most: int = 12) -> Sent:
    """Works until the model refuses a body; gives that exchange."""
    for _ in range(most):
        (sent,) = await proxy.work(agent, 1)
        if proxy.model.refusals:
            return sent
    pytest.fail("nothing was refused")


def before(agent: Agent) -> bytes:
    """The request that brought the newest answer."""
    return Agent(agent.messages[:-2], agent.fields).body()


def test_a_body_that_asks_keeps_all_else_and_what_the_client_set() -> None:
    raw = (
        b'{"model":"m","thinking":{"type":"enabled","budget_tokens":2048,"block_binding":{"x":1}},"messages":[ 1.50 ]}'
    )
    asked = asking_to_drop(raw)
    assert b'"messages":[ 1.50 ]' in asked
    assert json.loads(asked)["thinking"] == {
        "type": "enabled",
        "budget_tokens": 2048,
        "block_binding": {"x": 1, "prefix_mismatch_behavior": "drop_block"},
    }
    assert json.loads(asking_to_drop(b'{"messages":[]}'))["thinking"]["type"] == "adaptive"


@pytest.mark.parametrize(
    ("given", "wanted"),
    [((), BETA), ((("Anthropic-Beta", "a, b"),), f"a,b,{BETA}"), ((("anthropic-beta", BETA),), BETA)],
)
def test_the_beta_is_named_once_beside_the_clients_own(given: Any, wanted: str) -> None:
    assert with_beta((("x-api-key", "k"), *given)) == (("x-api-key", "k"), ("anthropic-beta", wanted))


def test_a_message_that_was_nothing_but_reasoning_is_not_left_empty() -> None:
    raw = b'{"role":"assistant","content":[{"type":"redacted_thinking","data":"cmVk"}]}'
    assert json.loads(stripped(raw))["content"] == [{"type": "text", "text": LEFT_OUT}]
    both = b'{"content":[{"type":"thinking","thinking":"","signature":"s"},{"type":"text",  "text":"x"}]}'
    assert b'[{"type":"text",  "text":"x"}]' in stripped(both)


@pytest.mark.parametrize(
    ("status", "words", "refusal"),
    [
        (400, "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to", True),
        (400, "Unexpected value(s) `thinking-binding-controls-2026-08-01` for the `anthropic-beta` header", True),
        (400, "thinking.block_binding: Extra inputs are not permitted", True),
        (400, "messages: roles must alternate", False),
        (500, "Invalid `signature` in `thinking` block", False),
    ],
)
def test_refusals_for_signatures_are_told_from_others(status: int, words: str, refusal: bool) -> None:
    assert is_refusal(status, words.encode()) is refusal
