"""Checking receipts again: what holds passes, what doesn't is named."""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec.structs import replace

from proxy.clients import load_profiles
from proxy.compaction.insertion import Insertion
from proxy.compaction.receipt import Receipt, body_digest
from proxy.dialects.chat import Chat
from proxy.redaction import Sealer
from proxy.store.replay import Replay, Replayed, faults, prefix_fault, verify
from proxy.store.sqlite import Store
from proxy.transcript import Message, digest_of
from tests.store.build import KEY, asked, said, stated

CALL = b'{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]}'


def replayed(*forwarded: Message, client: tuple[Message, ...] | None = None, **fields: object) -> Replayed:
    receipt = Receipt("r1", "", forwarded=body_digest(one.digest for one in forwarded))
    receipt = msgspec.structs.replace(receipt, **fields)
    return Replayed(receipt, forwarded if client is None else client, forwarded, ())


def test_body_that_is_what_was_sent_has_no_fault() -> None:
    one = replayed(said("Use tabs."), pins=("p1",), pins_present=1)
    assert list(faults(one, {"p1": "Use tabs."})) == []


def test_pin_that_stands_nowhere_is_named() -> None:
    one = replayed(said("hello"), said("Use tabs.", "assistant"), pins=("p1",), pins_present=1)
    (fault,) = faults(one, {"p1": "Use tabs."})
    assert "p1" in fault


def test_call_without_its_result_is_named_unless_the_client_sent_it_so() -> None:
    call = Chat().message(CALL)
    assert [f for f in faults(replayed(call, said("go on"), client=()), {}) if "pairing" in f]
    assert list(faults(replayed(call, said("go on")), {})) == []


def test_other_bytes_than_were_sent_are_named() -> None:
    (fault,) = faults(replayed(said("a"), forwarded="0" * 32), {})
    assert fault.startswith("forwarded")


def test_changed_prefix_is_named_and_a_grown_one_is_fine() -> None:
    a, b, c = said("a"), said("b"), said("c")
    before = replayed(a, b)
    assert prefix_fault(before, replayed(a, b, c)) == ""
    assert "prefix" in prefix_fault(before, replayed(a, c, client=(a, b, c)))
    assert prefix_fault(before, replayed(a, c)) == ""


def test_missing_message_is_named() -> None:
    one = replace(replayed(said("a")), missing=("d1",))
    assert list(faults(one, {})) == ["d1 is not in the store any more"]


def test_stored_receipts_are_rebuilt_with_their_insertions(tmp_path: Path) -> None:
    store = Store.open(tmp_path, Sealer(KEY))
    system, goal, more = said("You help.", "system"), said("Goal: shop."), said("Ship it.")
    block = Insertion("i1", "B1", 0, 0, "", "message", "The user said: password=hunter2-demo", "restore", pins=("p1",))
    chat = Chat()
    sent = [system.raw, chat.user_message(block.text), goal.raw, more.raw]
    batch = asked(
        system, goal, more, insertions=(block,), facts=(stated("p1", "The user said: password=hunter2-demo"),)
    )
    assert batch.receipt
    receipt = msgspec.structs.replace(
        batch.receipt,
        insertions=("i1",),
        pins=("p1",),
        pins_present=1,
        forwarded=body_digest(map(digest_of, sent)),
        client="generic",
    )
    store.submit(replace(batch, receipt=receipt)).result()
    replay = Replay(store, load_profiles([]), {"chat": chat})
    found = replay.rebuild("t1", receipt)
    assert found
    assert [one.raw for one in found.forwarded] == sent
    report = verify(store._db, store, replay)
    assert (report.receipts, report.rebuilt, report.problems) == (1, 1, ())
    store.close()
