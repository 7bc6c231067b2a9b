"""The very bytes of a body come back from what is stored of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from proxy.compaction.receipt import Receipt
from proxy.dialects.known import all_dialects
from proxy.redaction import Sealer
from proxy.store.frames import LARGE, WHOLE, Sent
from proxy.store.replay import Replay
from proxy.store.retention import purge
from proxy.store.sqlite import Store
from proxy.transcript import digest_of
from tests.builders import PROFILES
from tests.store.build import KEY, TENANT, asked

TOOLS = [{"type": "function", "function": {"name": "f", "description": "d" * LARGE}}]
TALK = [{"role": "user", "content": "Build it, é."}, {"role": "assistant", "content": "ok"}]
SECRET = "sk-proj-abcDEF123456ghiJKL789012mnoPQR345678"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store.open(tmp_path, Sealer(KEY))
    yield opened
    opened.close()


def kept(store: Store, dialect: str, body: bytes, forwarded: bytes = b"", changed: bool = False) -> Receipt:
    """Stores what one request leaves behind, and gives its receipt as it is on disk."""
    transcript = all_dialects()[dialect].parse(body)
    batch = asked(*transcript.messages)
    assert batch.receipt
    receipt = msgspec.structs.replace(batch.receipt, dialect=dialect, client="generic", changed=changed)
    sent = Sent(forwarded or body, transcript, not changed)
    store.submit(replace(batch, receipt=receipt, sent=sent)).result()
    (record,) = store._db.execute("SELECT record FROM receipts WHERE id = ?", (receipt.id,)).fetchone()
    return msgspec.json.decode(record, type=Receipt)


def again(store: Store, receipt: Receipt) -> bytes | None:
    replay = Replay(store, PROFILES, all_dialects())
    replayed = replay.rebuild(TENANT, receipt)
    assert replayed
    return replay.body(TENANT, replayed)


@pytest.mark.parametrize("space", [{}, {"separators": (",", ":")}, {"indent": 2}])
@pytest.mark.parametrize(
    ("dialect", "fields"),
    [
        ("chat", {"model": "m", "messages": TALK, "tools": TOOLS, "stream": True}),
        ("responses", {"model": "m", "instructions": "i" * LARGE, "input": TALK, "tools": TOOLS}),
        ("messages", {"system": [{"type": "text", "text": "s" * LARGE}], "messages": TALK, "max_tokens": 9}),
        ("responses", {"model": "m", "input": "one text"}),
    ],
)
def test_a_body_that_went_out_as_it_came_is_rebuilt_byte_for_byte(store, dialect, fields, space):
    body = json.dumps(fields, ensure_ascii=False, **space).encode()
    receipt = kept(store, dialect, body)
    assert receipt.sent == digest_of(body)
    assert again(store, receipt) == body


def test_large_values_are_kept_once_however_often_the_rest_changes(store):
    for number in range(3):
        system = [{"type": "text", "text": f"turn {number}"}, {"type": "text", "text": "s" * LARGE}]
        body = json.dumps({"system": system, "messages": TALK, "tools": TOOLS, "user": str(number)}).encode()
        assert again(store, kept(store, "messages", body)) == body
    sizes = [size for (size,) in store._db.execute("SELECT length(body) FROM frames")]
    assert len([size for size in sizes if size >= LARGE]) == 2
    assert len(sizes) == 5


def test_secret_values_around_the_messages_lie_sealed_and_come_back(store):
    body = json.dumps({"messages": TALK, "metadata": {"key": SECRET}}).encode()
    receipt = kept(store, "chat", body)
    assert again(store, receipt) == body
    (text,) = store._db.execute("SELECT group_concat(body) FROM frames").fetchone()
    assert SECRET not in text


def test_a_body_with_irregular_spacing_is_kept_whole_while_it_is_small(store):
    raws = [json.dumps(message) for message in (*TALK, TALK[0])]
    small = ('{"messages":[' + raws[0] + ", " + raws[1] + ",  " + raws[2] + "]}").encode()
    receipt = kept(store, "chat", small)
    assert receipt.gap == WHOLE
    assert again(store, receipt) == small
    large = small.replace(b"Build", b"B" * 70_000)
    assert again(store, kept(store, "chat", large)) is None


def test_a_rewritten_body_is_rebuilt_with_the_clients_own_frame(store):
    body = json.dumps({"model": "m", "messages": TALK}).encode()
    compact = b'{"model": "m", "messages": [' + b",".join(json.dumps(one).encode() for one in TALK) + b"]}"
    assert again(store, kept(store, "chat", body, compact, changed=True)) == compact


def test_what_is_named_and_gone_gives_no_body(store):
    receipt = kept(store, "chat", json.dumps({"messages": TALK, "tools": TOOLS}).encode())
    store.run(lambda db: db.execute("DELETE FROM frames WHERE length(body) > ?", (LARGE,))).result()
    assert again(store, receipt) is None


def test_frames_go_with_their_session(store):
    kept(store, "chat", json.dumps({"messages": TALK, "tools": TOOLS}).encode())
    late = datetime.now(UTC) + timedelta(days=2)
    store.run(lambda db: purge(db, days=1, max_bytes=1 << 30, now=late)).result()
    assert store._db.execute("SELECT count(*) FROM frames").fetchone() == (0,)
