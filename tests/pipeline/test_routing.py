"""Routes by path and by model, seen at two upstreams behind a whole proxy on loopback."""

import contextlib
import json
from io import StringIO

import aiohttp
import pytest

from proxy.assembly import assemble, open_upstream
from proxy.pipeline.routing import model_of
from proxy.server import Gate
from proxy.settings import load_settings
from proxy.telemetry import Log
from tests.fake_model import FakeModel, listening

CHAT, MESSAGES = "/v1/chat/completions", "/v1/messages"
HUMAN = [{"role": "user", "content": "Port the ledger to Rust."}]


@contextlib.asynccontextmanager
async def proxy(folder, url, routes):
    """Gives the address of a proxy with these routes."""
    file = folder / "mine.yaml"
    file.write_text(json.dumps({"upstream": {"url": url}, "data": str(folder / "data"), "routes": routes}))
    settings = load_settings([file])
    upstream, log = open_upstream(settings), Log(StringIO())
    assembly = assemble(settings, upstream, log)
    gate = Gate(settings.server, assembly.models, assembly.passing, assembly.doors, log)
    try:
        async with listening(gate.server()) as address:
            yield address
    finally:
        assembly.close()
        for one in (upstream, *assembly.upstreams):
            await one.close()
        log.close()


@pytest.fixture(autouse=True)
def _key(monkeypatch):
    monkeypatch.setenv("GOALKEEPER_SEAL_KEY", "some words for the tests")


async def ask(client, url, model="m", method="POST"):
    body = (
        json.dumps({"model": model, "max_tokens": 5, "messages": HUMAN, "input": HUMAN}) if method == "POST" else None
    )
    async with client.request(method, url, data=body) as answer:
        await answer.read()
        return answer.status


async def test_each_request_reaches_the_upstream_of_its_path_or_model(tmp_path):
    async with FakeModel() as openai, FakeModel() as anthropic, aiohttp.ClientSession() as client:
        routes = {"claude-*": {"url": anthropic.url}, MESSAGES: {"url": anthropic.url}}
        async with proxy(tmp_path, openai.url, routes) as url:
            asked = [
                (CHAT, "gpt-5"),
                (CHAT, "claude-5"),
                (MESSAGES, "qwen"),
                (f"{MESSAGES}/count_tokens?beta=true", "qwen"),
                ("/v1/embeddings", "claude-embed"),
                ("/v1/embeddings", "e-3"),
                ("/v1/messagesque", "m"),
            ]
            for path, model in asked:
                assert await ask(client, url + path, model) == 200
            assert await ask(client, f"{url}/p/books/v1/messages/batches", method="GET") == 200
            assert await ask(client, f"{url}/v1/models", method="GET") == 200
        assert [seen.path for seen in openai.seen] == [CHAT, "/v1/embeddings", "/v1/messagesque", "/v1/models"]
        assert [seen.path for seen in anthropic.seen] == [
            CHAT,
            MESSAGES,
            f"{MESSAGES}/count_tokens?beta=true",
            "/v1/embeddings",
            f"{MESSAGES}/batches",
        ]


async def test_a_request_that_goes_on_from_what_only_the_upstream_knows_takes_its_route_too(tmp_path):
    async with FakeModel() as default, FakeModel() as other, aiohttp.ClientSession() as client:
        async with proxy(tmp_path, default.url, {"deep-*": {"url": other.url}}) as url:
            body = json.dumps({"model": "deep-2", "previous_response_id": "resp_elsewhere", "input": HUMAN})
            async with client.post(f"{url}/v1/responses", data=body) as answer:
                assert answer.status == 200
        assert (len(default.seen), len(other.seen)) == (0, 1)


@pytest.mark.parametrize("body", [b"", b"[1]", b'{"model": 3}', b'{"model": "m"', b"\xff\xfe", b'"m"'])
def test_a_body_that_names_no_model_has_none(body):
    assert model_of(body) == ""
