"""The provider's own compaction on demand, against a model that checks blocks and signatures as Anthropic says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from proxy.compaction.thinking import asking_to_condense, block_in
from tests.signing import COMPACT_BETA, GOAL, Agent, Proxy, Sent, SigningModel, begun, proxied, words

RULE = "No, never touch the folder legacy/; leave it exactly as it is."
CHAT = "Thanks, that looks fine so far."
SETTINGS = {"budget": 6_000, "reasoning": {"compaction": "background"}}


async def until_asked(proxy: Proxy, agent: Agent, number: int = 1, size: int = 1_500) -> list[Sent]:
    """Works until the provider was asked for a block, and it came."""
    done = []
    for _ in range(30):
        done += await proxy.work(agent, 1, size)
        await proxy.settled()
        if len(proxy.model.orders) >= number:
            return done
    pytest.fail("the provider was never asked")


async def test_the_oldest_turns_give_way_to_the_providers_block_and_all_reasoning_stays_valid(tmp_path: Path) -> None:
    async with proxied(tmp_path, SigningModel(), **SETTINGS) as proxy:
        agent = begun()
        await proxy.work(agent, 1)
        agent.messages[-1]["content"].append({"type": "text", "text": RULE})
        before = await until_asked(proxy, agent)
        assert not any(sent.receipt["changed"] for sent in before)
        (swap,) = await proxy.work(agent, 1, 1_500)
        assert (swap.status, swap.receipt["compaction"], swap.receipt["flags"]) == (200, "compaction", ())
        sent = swap.body["messages"]
        assert sent[0]["content"][0]["signature"] == "block-1"
        assert COMPACT_BETA in swap.headers["anthropic-beta"]
        kept = sent[1:-1]
        assert kept == agent.messages[-len(kept) - 3 : -3]
        assert kept[0]["role"] == "assistant"
        assert sent[-1]["content"][0]["type"] == "tool_result"
        for told in (GOAL, RULE):
            assert told in sent[-1]["content"][-1]["text"]
        assert swap.receipt["pins_present"] == swap.receipt["pins_active"] == 2
        assert (proxy.model.refusals, proxy.model.dropped) == (0, [])
        assert (swap.receipt["summarizer_model"], swap.receipt["summarizer_tokens"]) == ("m", 990)


async def test_after_the_swap_a_body_only_grows_also_after_a_restart(tmp_path: Path) -> None:
    async with proxied(tmp_path, SigningModel(), **SETTINGS) as proxy:
        agent = begun()
        await until_asked(proxy, agent)
        (swap,) = await proxy.work(agent, 1, 300)
        await proxy.restart()
        done = await proxy.work(agent, 3, 300)
        for sent in done:
            assert sent.body["messages"][: len(swap.body["messages"])] == swap.body["messages"]
            assert words(sent).count(GOAL) == 1
        assert (proxy.model.refusals, proxy.model.dropped, proxy.problems()) == (0, [], [])


async def test_a_second_block_stands_for_the_first_and_what_came_after_it(tmp_path: Path) -> None:
    async with proxied(tmp_path, SigningModel(), **SETTINGS) as proxy:
        agent = begun()
        await until_asked(proxy, agent)
        await proxy.work(agent, 1, 1_500)
        proxy.model.calls = False
        await proxy.work(agent, 1)
        agent.say(RULE)
        await proxy.work(agent, 1)
        agent.say(CHAT)
        proxy.model.calls = True
        await until_asked(proxy, agent, 2)
        assert proxy.model.orders[1]["messages"][0]["content"][0]["signature"] == "block-1"
        (swap,) = await proxy.work(agent, 1, 1_500)
        assert swap.body["messages"][0]["content"][0]["signature"] == "block-2"
        assert [words(swap).count(text) for text in (GOAL, RULE, CHAT)] == [1, 1, 1]
        later = await proxy.work(agent, 2, 300)
        assert all(sent.body["messages"][: len(swap.body["messages"])] == swap.body["messages"] for sent in later)
        assert (proxy.model.refusals, proxy.model.dropped, proxy.problems()) == (0, [], [])


async def test_an_upstream_that_knows_no_such_thing_is_asked_once_and_the_cut_goes_the_other_way(
    tmp_path: Path,
) -> None:
    async with proxied(tmp_path, SigningModel(condenses=False), **SETTINGS) as proxy:
        agent = begun()
        done = await proxy.work(agent, 14, 1_500)
        assert len(proxy.model.orders) == 1
        assert [sent.status for sent in done] == [200] * 14
        cut = next(sent for sent in done if sent.receipt["compaction"])
        assert cut.body["thinking"]["block_binding"] == {"prefix_mismatch_behavior": "drop_block"}
        assert GOAL in words(done[-1])


async def test_a_block_that_the_upstream_then_refuses_is_taken_back_and_never_asked_for_again(tmp_path: Path) -> None:
    async with proxied(tmp_path, SigningModel(), **SETTINGS) as proxy:
        agent = begun()
        await until_asked(proxy, agent)
        proxy.model.told[0]["content"] = "something else"
        (swap,) = await proxy.work(agent, 1, 1_500)
        assert (swap.status, len(swap.forwarded)) == (200, 2)
        assert "plan_refused" in swap.receipt["flags"]
        assert swap.body["messages"] == agent.messages[:-2]
        done = await proxy.work(agent, 10, 1_500)
        assert [sent.status for sent in done] == [200] * 10
        assert len(proxy.model.orders) == 1
        assert any("block_binding" in sent.body["thinking"] for sent in done)
        assert GOAL in words(done[-1])


async def test_nobody_is_asked_unless_it_is_allowed(tmp_path: Path) -> None:
    async with proxied(tmp_path, SigningModel(), budget=6_000) as proxy:
        await proxy.work(begun(), 12, 1_500)
        assert proxy.model.orders == []


async def test_a_block_that_no_longer_fits_is_left_out(tmp_path: Path) -> None:
    async with proxied(tmp_path, SigningModel(), **SETTINGS) as proxy:
        agent = begun()
        await until_asked(proxy, agent)
        agent.messages = agent.messages[:3]
        (sent,) = await proxy.work(agent, 1)
        assert sent.forwarded == (Agent(agent.messages[:3], agent.fields).body(),)


def test_the_order_leaves_out_what_the_api_refuses_and_keeps_the_rest_byte_for_byte() -> None:
    raw = (
        b'{"model":"m","max_tokens":9,"system":[ 1.50 ],"stream":true,"stop_sequences":["x"],'
        b'"tool_choice":{"type":"any"},"context_management":{},"output_config":{"format":{},"effort":"low"},'
        b'"thinking":{"type":"enabled","budget_tokens":2000},"messages":[ 2.50 ]}'
    )
    asked = asking_to_condense(raw, 4_096)
    assert b'"system":[ 1.50 ]' in asked
    assert b'"messages":[ 2.50 ]' in asked
    assert {key: value for key, value in json.loads(asked).items() if key not in ("system", "messages")} == {
        "model": "m",
        "max_tokens": 6_096,
        "output_config": {"effort": "low"},
        "thinking": {"type": "enabled", "budget_tokens": 2000},
        "compaction": {"type": "summarize"},
    }


@pytest.mark.parametrize(
    "answer",
    [
        {"content": [], "stop_reason": "max_tokens"},
        {"content": [{"type": "text", "text": "x"}], "stop_reason": "end_turn"},
        {"content": [{"type": "compaction", "content": "x"}], "stop_reason": "compaction"},
        {"content": "x", "stop_reason": "compaction"},
        {},
    ],
)
def test_an_answer_without_a_whole_signed_block_is_none(answer: dict[str, object]) -> None:
    assert block_in(json.dumps(answer).encode()) == ("", "", 0)
