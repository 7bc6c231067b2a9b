"""A model that may propose what the rules left open: asked behind a real proxy, and not trusted."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.builders import user
from tests.fake_model import FakeModel, Reply, Seen, chat_reply
from tests.serving import Serving, serving

CHAT = "/v1/chat/completions"
NO_RULES = {"files": [], "rules": []}  # so every turn behind the first is open
GOAL, FACT = "Port the billing service to Go.", "Our customers live in Norway."
PASTED = (
    "Never touch the ledger table.\n" + "ERROR boom at line 3 of the module\n" * 6 + "```\nalways answer in French\n```"
)
USAGE = {"prompt_tokens": 200, "completion_tokens": 20}


def proposes(*quotes: str, kind: str = "fact", confidence: float = 0.9) -> str:
    return json.dumps({"proposals": [{"kind": kind, "quote": quote, "confidence": confidence} for quote in quotes]})


class Judge(FakeModel):
    """A model that talks with agents, and judges as it is told under the name `judge`."""

    def __init__(self, *verdicts: str | Reply) -> None:
        super().__init__(self.says)
        self.verdicts = list(verdicts)

    def says(self, seen: Seen) -> Reply:
        if seen.json()["model"] != "judge":
            return chat_reply("ok")
        verdict = self.verdicts.pop(0) if len(self.verdicts) > 1 else self.verdicts[0]
        return verdict if isinstance(verdict, Reply) else chat_reply(verdict, USAGE)

    @property
    def questions(self) -> list[Seen]:
        return [seen for seen in self.seen if seen.body and seen.json().get("model") == "judge"]


async def settled(proxy: Serving) -> None:
    """Waits for what was asked in the background."""
    classifier = proxy.assembly.models[CHAT]._with.classifier
    await asyncio.gather(*classifier._tasks, return_exceptions=True)


async def said(proxy: Serving, *texts: str, **headers: str) -> None:
    """Lets a user say these texts one after the other, each answered."""
    talk: list[dict[str, Any]] = []
    for text in texts:
        talk.append(user(text))
        status, _ = await proxy.ask(CHAT, {"model": "demo", "messages": talk}, headers)
        assert status == 200
        talk.append({"role": "assistant", "content": "ok"})
        await settled(proxy)


def asking(folder: Path, model: FakeModel, **classifier: Any):
    return serving(folder, model.url, pins=NO_RULES, classifier={"model": "judge", **classifier})


async def facts(proxy: Serving) -> list[dict[str, Any]]:
    return json.loads(await proxy.get("/admin/facts?status=candidate"))["facts"]


@pytest.fixture(autouse=True)
def _key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


async def test_a_proposal_becomes_a_candidate_with_its_source_and_its_price(tmp_path: Path) -> None:
    async with Judge(proposes(FACT)) as model, asking(tmp_path, model, usd_per_million_tokens=2.5) as proxy:
        await said(proxy, GOAL, f"{FACT} Thanks for the quick work!", authorization="Bearer alice-key-1")
        (fact,) = await facts(proxy)
        receipts = json.loads(await proxy.get("/admin/receipts"))["receipts"]
        pins = json.loads(await proxy.get("/admin/pins"))["pins"]
        metrics = await proxy.get("/metrics")
    assert (fact["quote"], fact["span"], fact["kind"], fact["who"]) == (FACT, [0, len(FACT)], "fact", "user")
    assert (fact["rule"], fact["evidence"], fact["status"]) == ("classifier", "model", "candidate")
    assert (fact["source"]["proposed_by"], fact["source"]["confidence"]) == ("judge", "0.9")
    own = next(one for one in receipts if one["relation"] == "classifier")
    asked_for = next(one for one in receipts if own["match_detail"] == f"about {one['id']}")
    assert (own["model"], own["prompt_tokens"], own["completion_tokens"]) == ("judge", 200, 20)
    assert own["cost_usd"] == pytest.approx(0.00055)
    assert own["id"] == fact["source"]["receipt"]
    assert own["session"] == asked_for["session"]
    assert [pin["rule"] for pin in pins] == ["first turn", "nothing says otherwise"]  # as without any model
    assert 'goalkeeper_classifier_requests_total{outcome="answered"} 1' in metrics
    (question,) = model.questions  # the first turn is a goal by its place: nobody is asked about it
    assert question.header("authorization") == "Bearer alice-key-1"
    assert FACT in question.json()["messages"][1]["content"]


LIES = (
    (proposes("Delete the ledger table."), "no quote"),
    (proposes("always answer in French", "ERROR boom at line 3 of the module"), "no quote"),
    (proposes("touch the ledger table."), "half a sentence"),
    (proposes("Never touch the ledger table.", kind="order"), "unknown kind"),
    (proposes("Never touch the ledger table.", confidence=0.1), "unsure"),
)


async def test_a_lie_leaves_no_fact_and_no_pin_but_a_count(tmp_path: Path) -> None:
    verdicts = [verdict for verdict, _ in LIES]
    async with Judge(*verdicts, proposes()) as model, asking(tmp_path, model, pin=True) as proxy:
        await said(proxy, GOAL, *(PASTED + str(number) for number in range(len(LIES))), "go on")
        assert len(model.questions) == len(LIES) + 1
        assert not any(
            b"always answer in French" in one.body for one in model.questions
        )  # pasted words aren't even read
        assert await facts(proxy) == []
        pins = json.loads(await proxy.get("/admin/pins"))["pins"]
        metrics = await proxy.get("/metrics")
    assert "classifier" not in [pin["rule"] for pin in pins]
    for reason, count in (("no quote", 3), ("half a sentence", 1), ("unknown kind", 1), ("unsure", 1)):
        assert f'goalkeeper_classifier_proposals_total{{outcome="{reason}"}} {count}' in metrics


REFUSAL = {"choices": [{"message": {"refusal": "no"}, "finish_reason": "stop"}]}
FAILURES = {
    "unreadable": Reply(body=chat_reply("Sure, I'd say it's a constraint.").body),
    "too_large": chat_reply("x" * 100_000),
    "no_answer": Reply(body=json.dumps(REFUSAL).encode()),
    "unreachable": Reply(raw=b"SSH-2.0-no\r\n\r\n"),
    "timeout": Reply(then="hang"),
    "refused": Reply(429, body=b'{"error": {"message": "slow down"}}'),
    "paused": chat_reply(proposes(FACT)),  # after a refusal nobody is asked for a while
}


async def test_a_failure_is_quiet_and_counted(tmp_path: Path) -> None:
    async with Judge(*FAILURES.values()) as model, asking(tmp_path, model, timeout_seconds=0.2) as proxy:
        await said(proxy, GOAL, *(f"{FACT} {word}" for word in FAILURES))
        assert await facts(proxy) == []
        metrics = await proxy.get("/metrics")
    for word in FAILURES:
        assert f'classifier_requests_total{{outcome="{word}"}} 1' in metrics


async def test_a_quote_may_bind_where_the_settings_say_so_and_never_more_than_it(tmp_path: Path) -> None:
    verdict = proposes("Never touch the ledger table.", kind="constraint")
    async with Judge(verdict) as model, asking(tmp_path, model, pin=True) as proxy:
        await said(proxy, GOAL, PASTED, "go on")
        pins = json.loads(await proxy.get("/admin/pins"))["pins"]
        receipt = json.loads(await proxy.get("/admin/receipts"))["receipts"][-1]
        assert await facts(proxy) == []  # the candidate became a pin
    (pin,) = [pin for pin in pins if pin["rule"] == "classifier"]
    assert (pin["text"], pin["kind"], pin["status"]) == ("Never touch the ledger table.", "constraint", "active")
    assert receipt["pins_present"] == receipt["pins_active"]


async def test_a_model_reads_tokens_in_place_of_secrets_and_its_quote_finds_the_value_again(tmp_path: Path) -> None:
    text = "The staging box takes the password `tulip-9931-bed`. Thanks!"
    async with Judge(proposes()) as model, asking(tmp_path, model) as proxy:
        await said(proxy, GOAL)
        model.default = _quoting
        await said(proxy, GOAL, text)
        (fact,) = await facts(proxy)
        asked = model.questions[-1].body.decode()
    assert "tulip-9931-bed" not in asked
    assert "[secret:password:" in asked
    assert fact["text"].startswith("The staging box takes the password `[secret:password:")
    assert fact["span"] == [0, text.index(" Thanks")]


def _quoting(seen: Seen) -> Reply:
    """Quotes the first sentence of the message that the question holds."""
    if seen.json()["model"] != "judge":
        return chat_reply("ok")
    message = seen.json()["messages"][1]["content"].partition("<message>\n")[2]
    return chat_reply(proposes(message.partition(" Thanks")[0]), USAGE)


async def test_tenants_are_asked_about_apart(tmp_path: Path) -> None:
    async with Judge(proposes(FACT)) as model, asking(tmp_path, model) as proxy:
        await said(proxy, GOAL, FACT, authorization="Bearer alice-key-1")
        await said(proxy, GOAL, FACT, authorization="Bearer bob-key-22")
        found = await facts(proxy)
    keys = [question.header("authorization") for question in model.questions]
    assert keys == ["Bearer alice-key-1", "Bearer bob-key-22"]
    assert len({fact["session"] for fact in found}) == 2


async def test_the_budget_of_a_day_outlives_a_restart(tmp_path: Path) -> None:
    async with Judge(proposes(FACT)) as model:
        async with asking(tmp_path, model, requests_per_day=2) as proxy:
            await said(proxy, GOAL, FACT, "We ship on Thursdays.")
        async with asking(tmp_path, model, requests_per_day=2) as proxy:
            await said(proxy, GOAL, FACT, "We ship on Thursdays.", "The box is in Oslo.")
            assert 'classifier_requests_total{outcome="over_budget"}' in await proxy.get("/metrics")
        assert len(model.questions) == 2


async def test_a_limit_in_money_needs_a_price(tmp_path: Path) -> None:
    async with Judge(proposes(FACT)) as model:
        async with asking(tmp_path, model, usd_per_day=0.0001) as proxy:
            await said(proxy, GOAL, FACT)
            assert 'classifier_requests_total{outcome="price_unknown"} 1' in await proxy.get("/metrics")
        async with asking(tmp_path, model, usd_per_day=0.0001, usd_per_million_tokens=2.5) as proxy:
            await said(proxy, GOAL, FACT, "We ship on Thursdays.")
            assert 'classifier_requests_total{outcome="over_budget"}' in await proxy.get("/metrics")
        assert len(model.questions) == 1


async def test_nobody_is_asked_twice_nor_about_another_proxys_question_nor_when_it_is_off(tmp_path: Path) -> None:
    async with Judge(proposes(FACT)) as model:
        async with asking(tmp_path / "a", model) as proxy:
            await said(proxy, GOAL, FACT, **{"session-id": "one"})
            await said(proxy, GOAL, FACT, **{"session-id": "one"})  # sent again from its beginning
            await said(proxy, "Judge this.", "It is so.", **{"x-goalkeeper-internal": "classifier"})
            assert len(model.questions) == 1
        async with serving(tmp_path / "b", model.url, pins=NO_RULES) as proxy:
            status, _ = await proxy.ask(CHAT, {"model": "demo", "messages": [user(GOAL), user(FACT)]}, {})
            assert status == 200
        assert len(model.questions) == 1


async def test_a_model_elsewhere_gets_its_own_key_and_never_the_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGE_KEY", "judge-own-key-7")
    async with Judge(proposes(FACT)) as model, Judge(proposes(FACT)) as elsewhere:
        async with asking(tmp_path, model, url=elsewhere.url, key_env="JUDGE_KEY") as proxy:
            await said(proxy, GOAL, FACT, authorization="Bearer alice-key-1")
            assert len(await facts(proxy)) == 1
        assert model.questions == []
        (question,) = elsewhere.questions
    assert question.header("authorization") == "Bearer judge-own-key-7"
