"""Routes to other upstreams, and the way through litellm, against the real model stand-in on loopback."""

import asyncio
import json

import pytest

from proxy.errors import BadRequest
from proxy.pipeline.routing import Routing
from proxy.providers import Litellm, ProviderReply
from proxy.upstream import Upstream
from tests.fake_model import FakeModel
from tests.pipeline.test_classifying import FACT, GOAL, NO_RULES, Judge, facts, proposes, said
from tests.serving import serving

ASKED = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
HEADERS = (("Authorization", "Bearer sk-route-key-000000"),)


@pytest.fixture
async def model():
    async with FakeModel() as running:
        yield running


async def test_the_first_route_that_fits_a_model_counts():
    default, claude, other = Upstream("http://a"), Upstream("http://b"), Upstream("http://c")
    routing = Routing(default, {"claude-*": claude, "*": other})
    try:
        assert routing.sender("claude-5") is claude
        assert routing.sender("qwen") is other
        assert Routing(default).sender("qwen") is default
        assert (routing.place("claude-5"), Routing(default).place("x")) == ("claude-*", "")
    finally:
        await asyncio.gather(default.close(), claude.close(), other.close())


async def test_litellm_takes_a_chat_to_its_provider_and_back_whole_and_streamed(model):
    sender = Litellm(model="openai/inner", url=f"{model.url}/v1")
    whole = await sender.send("POST", "/v1/chat/completions", HEADERS, json.dumps(ASKED).encode())
    assert whole.status == 200
    assert json.loads(await whole.read())["choices"][0]["message"]["role"] == "assistant"
    seen = model.seen[-1]
    assert seen.json()["model"] == "inner"
    assert seen.header("authorization") == "Bearer sk-route-key-000000"
    streamed = await sender.send(
        "POST", "/v1/chat/completions", HEADERS, json.dumps({**ASKED, "stream": True}).encode()
    )
    data = await streamed.read()
    assert streamed.sse
    assert data.startswith(b"data: {")
    assert data.endswith(b"data: [DONE]\n\n")


async def test_another_path_than_chat_is_refused_in_words():
    with pytest.raises(BadRequest, match="chat completions only"):
        await Litellm().send("POST", "/v1/messages", (), b"{}")


async def test_what_was_looked_at_is_read_again():
    async def parts():
        yield b"ab"
        yield b"cd"

    reply = ProviderReply(200, [("Content-Type", "application/json")], parts())
    assert await reply.head(2) == b"ab"
    assert await reply.read() == b"abcd"
    assert reply.header("content-type") == "application/json"


async def test_a_classifier_behind_litellm_proposes_too(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("JUDGE_KEY", "judge-own-key-7")
    asked = {"provider": "litellm", "model": "openai/judge", "key_env": "JUDGE_KEY", "timeout_seconds": 60}
    async with Judge(proposes(FACT)) as judge:
        way = {**asked, "url": f"{judge.url}/v1"}
        async with serving(tmp_path / "data", judge.url, pins=NO_RULES, classifier=way) as proxy:
            await said(proxy, GOAL, FACT)
            (fact,) = await facts(proxy)
    assert fact["quote"] == FACT
    assert judge.questions[0].header("authorization") == "Bearer judge-own-key-7"
