"""Requests that go on from what the upstream keeps: a real pipeline and store between a client and a model."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from proxy.assembly import MODEL_PATHS, build_models
from proxy.cli.main import main
from proxy.errors import ClientGone
from proxy.exchange import Call, Exchange
from proxy.store.rows import Batch
from proxy.tokens import Counter
from tests.builders import count
from tests.contract.world import Sink
from tests.fake_model import SSE, FakeModel, Reply, Seen
from tests.items import GOAL, RULE, Item, call, compaction, environment, output, says, thought, user
from tests.running import Running

HEADERS = (("Content-Type", "application/json"), ("Authorization", "Bearer one"))


class Leaving(Sink):
    """A client that closes the connection as soon as it has read an event."""

    def __init__(self, event: bytes) -> None:
        super().__init__()
        self._event = event

    async def write(self, data: bytes) -> None:
        """Leaves instead of waiting for what comes behind the event."""
        if self._event in data:
            raise ClientGone("the client left")


class Line:
    """A proxy with its store, and a model that keeps what it is sent."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self._settings = settings
        self.bodies: list[dict[str, Any]] = []
        self.raw: list[bytes] = []
        self._folder = folder
        self._answer: list[Item] = []
        self._runner = asyncio.Runner()
        self._model = FakeModel(self._reply)
        self._runner.run(self._model.__aenter__())
        self._start()

    def _start(self) -> None:
        self._runner.run(self._started())

    async def _started(self) -> None:
        self._running = Running.start(self._folder, self._model.url, Counter(count), **self._settings)
        self.models: dict[str, Exchange] = dict(build_models(self._running.parts))

    def _stop(self) -> None:
        self._runner.run(self._running.close())

    def restart(self) -> None:
        """Ends the proxy and starts it again on the same folder."""
        self._stop()
        self._start()

    def close(self) -> None:
        """Ends everything."""
        self._stop()
        self._runner.run(self._model.__aexit__())
        self._runner.close()

    def verified(self) -> int:
        """The exit code of `goalkeeper verify`."""
        self._running.parts.store.submit(Batch()).result()
        return main(["verify", "--data", str(self._folder)])

    def _reply(self, seen: Seen) -> Reply:
        self.raw.append(seen.body)
        self.bodies.append(seen.json())
        answer = {"id": f"resp_{len(self.bodies)}", "object": "response", "status": "completed", "output": self._answer}
        if not seen.json().get("stream"):
            return Reply(body=json.dumps(answer).encode())
        last = {"type": "response.completed", "response": answer}
        return Reply(headers=SSE, chunks=[f"data: {json.dumps(last)}\n\n".encode()])

    def send(
        self,
        *items: Item,
        answer: list[Item] | None = None,
        path: str = "/v1/responses",
        sink: Sink | None = None,
        **fields: Any,
    ) -> dict[str, Any]:
        """Sends a request, and gives the body that the model got."""
        budget = fields.pop("budget", "")
        self._answer = answer or [says("Fine, going on with the next module of the service.")]
        headers = (*HEADERS, ("x-goalkeeper-budget", budget)) if budget else HEADERS
        self.sent = json.dumps({"model": "demo", **fields, "input": list(items)}).encode()
        self._runner.run(self._handled(Call("POST", path, headers, self.sent), sink or Sink()))
        return self.bodies[-1]

    async def _handled(self, call: Call, sink: Sink) -> None:
        with contextlib.suppress(ClientGone):
            await self.models[call.path].handle(call, sink)

    def receipt(self) -> dict[str, Any]:
        """The newest receipt."""
        return self._running.newest_receipt()


@pytest.fixture
def line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Line]:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    made = Line(tmp_path / "data")
    yield made
    made.close()


def work(line: Line, first: int, last: int, previous: str, **fields: Any) -> None:
    """Several steps, each going on from the reply before."""
    for number in range(first, last + 1):
        line.send(output(number - 1), answer=[thought(number), call(number)], previous_response_id=previous, **fields)
        previous = f"resp_{len(line.bodies)}"


def test_a_request_that_names_a_known_reply_goes_out_as_it_came_and_is_the_same_branch(line):
    line.send(user(GOAL), answer=[thought(1), call(1)])
    branch = line.receipt()["branch"]
    line.send(output(1), previous_response_id="resp_1")
    assert line.raw[-1] == line.sent
    found = line.receipt()
    assert (found["branch"], found["relation"], found["messages"]) == (branch, "extends", 4)
    assert (found["pins_present"], found["pins_active"]) == (1, 1)


@pytest.mark.parametrize("restart", [False, True])
def test_a_chain_that_outgrows_its_budget_is_sent_whole_and_compacted(line, restart):
    line.send(user(GOAL), answer=[thought(1), call(1)])
    line.send(output(1), user(RULE), answer=[thought(2), call(2)], previous_response_id="resp_1")
    work(line, 3, 12, "resp_2")
    if restart:
        line.restart()
    previous = f"resp_{len(line.bodies)}"
    body = line.send(output(12), previous_response_id=previous, budget="1000")
    assert "previous_response_id" not in body
    assert line.receipt()["compaction"] == "compaction"
    whole = json.dumps(body["input"])
    assert GOAL in whole
    assert RULE in whole
    assert body["input"][-1] == output(12)


def test_behind_a_rewritten_request_the_chain_goes_on_from_the_new_reply(line):
    line.send(user(GOAL), answer=[thought(1), call(1)])
    work(line, 2, 12, "resp_1")
    line.send(output(12), answer=[call(13)], previous_response_id="resp_12", budget="1000")
    line.send(output(13), previous_response_id="resp_13", budget="1000")
    assert line.raw[-1] == line.sent
    found = line.receipt()
    assert (found["changed"], len(found["insertions"]), found["compaction"]) == (False, 1, "")


def test_a_chain_that_forks_off_before_a_rewrite_is_seen_as_it_stands_there(line):
    line.send(user(GOAL), answer=[thought(1), call(1)])
    work(line, 2, 12, "resp_1")
    line.send(output(12), answer=[call(13)], previous_response_id="resp_12", budget="1000")
    line.send(output(2), user(RULE), previous_response_id="resp_2", budget="1000")
    assert line.raw[-1] == line.sent
    assert line.receipt()["messages"] == 8


@pytest.mark.parametrize("fields", [{"previous_response_id": "resp_x"}, {"conversation": "conv_1"}])
def test_what_only_the_upstream_knows_passes_untouched_and_says_so(line, fields):
    line.send(user("Go on."), **fields)
    assert line.raw[-1] == line.sent
    assert line.receipt()["flags"] == ["server_state"]


def test_another_tenant_cannot_go_on_from_a_reply(line, monkeypatch):
    line.send(user(GOAL))
    monkeypatch.setattr("tests.test_replies.HEADERS", (("Authorization", "Bearer two"),))
    line.send(user("Go on."), previous_response_id="resp_1")
    assert line.receipt()["flags"] == ["server_state"]


def test_a_reply_that_the_client_didnt_want_kept_isnt(line):
    line.send(user(GOAL), store=False)
    line.send(user("Go on."), previous_response_id="resp_1")
    assert line.receipt()["flags"] == ["server_state"]


def named(item: Item, name: str) -> Item:
    """An item as the model answers it, with its own id."""
    return {**item, "id": name}


def refers(name: str) -> Item:
    """A reference to an item."""
    return {"type": "item_reference", "id": name}


def by_reference(line: Line, last: int, **fields: Any) -> list[Item]:
    """A session whose client sends the model's items back as references; gives what it would send next."""
    items = [user(GOAL)]
    for number in range(1, last + 1):
        made = [named(thought(number), f"rs_{number}"), named(call(number), f"fc_{number}")]
        line.send(*items, answer=made, **fields)
        items += [refers(f"rs_{number}"), {"id": f"fc_{number}"}, output(number)]
    return items


def test_references_to_known_items_are_read_as_the_items_and_go_out_as_they_came(line):
    items = by_reference(line, 2)
    branch = line.receipt()["branch"]
    line.send(*items, user(RULE))
    assert line.raw[-1] == line.sent
    found = line.receipt()
    assert (found["branch"], found["relation"], found["flags"]) == (branch, "extends", ())
    assert line.verified() == 0


@pytest.mark.parametrize("restart", [False, True])
def test_a_body_of_references_that_outgrows_its_budget_is_sent_with_the_items_themselves(line, restart):
    items = by_reference(line, 12)
    if restart:
        line.restart()
    body = line.send(*items, budget="1000")
    kept = body["input"]
    assert line.receipt()["compaction"] == "compaction"
    assert GOAL in json.dumps(kept[:2])
    assert kept[-3:] == [named(thought(12), "rs_12"), named(call(12), "fc_12"), output(12)]
    assert not [item for item in kept if item.get("type") == "item_reference"]
    again = line.send(*items, user(RULE), budget="1000")
    assert again["input"][: len(kept)] == kept
    assert line.verified() == 0


def test_a_reference_to_what_only_the_upstream_knows_stays_and_nothing_behind_it_is_cut(line):
    steps = [item for number in range(2, 12) for item in (call(number), output(number))]
    sent = [user(GOAL), refers("fc_other"), output(1), *steps, user(RULE)]
    line.send(*sent, budget="1000")
    assert line.raw[-1] == line.sent
    assert "unknown_reference" in line.receipt()["flags"]


def test_another_tenants_items_are_not_read(line, monkeypatch):
    items = by_reference(line, 1)
    monkeypatch.setattr("tests.test_replies.HEADERS", (("Authorization", "Bearer two"),))
    line.send(*items)
    assert line.raw[-1] == line.sent
    assert "unknown_reference" in line.receipt()["flags"]


def test_a_compaction_by_id_alone_passes_and_its_item_brings_the_words_back(line):
    line.send(user(GOAL), answer=[says("Fine.")])
    line.send(user(RULE), previous_response_id="resp_1")
    line.send(answer=[compaction()], path="/v1/responses/compact", previous_response_id="resp_2")
    assert line.raw[-1] == line.sent
    body = line.send(compaction(), user("Go on."))
    assert [item["type"] for item in body["input"]] == ["compaction", "message", "message"]
    words = json.dumps(body["input"][1])
    assert GOAL in words
    assert RULE in words


def test_what_was_sent_is_verified_with_the_profiles_that_read_it(line):
    line.send(user(GOAL), answer=[thought(1), call(1)])
    work(line, 2, 3, "resp_1")
    line.send(environment(), user("Another language model started to solve this problem and produced a summary of it."))
    line.send(answer=[compaction()], path="/v1/responses/compact", previous_response_id="resp_3")
    line.send(environment(), compaction(), user("Go on."))
    assert GOAL in json.dumps(line.bodies[-1])
    assert line.verified() == 0


def test_a_client_that_leaves_behind_the_last_event_got_the_whole_answer(line):
    line.send(user(GOAL), stream=True, sink=Leaving(b"response.completed"))
    assert (line.receipt()["status"], line.receipt()["partial"]) == (200, False)
    line.send(user("Go on."), previous_response_id="resp_1")
    assert line.receipt()["relation"] == "extends"


@pytest.mark.parametrize(("window", "flags"), [(None, ["truncation_auto"]), (60_000, [])])
def test_a_server_that_may_truncate_by_itself_is_named_where_the_window_is_unknown(tmp_path, window, flags):
    line = Line(tmp_path / "data", models={"demo": {"window": window}} if window else {})
    try:
        line.send(user(GOAL), truncation="auto")
        assert (line.raw[-1], list(line.receipt()["flags"])) == (line.sent, flags)
    finally:
        line.close()


def test_every_path_of_a_dialect_has_one_pipeline(line):
    models = line.models
    assert models.keys() == MODEL_PATHS.keys()
    assert models["/v1/responses"] is models["/v1/responses/compact"]
