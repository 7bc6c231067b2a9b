"""Taking words out of what is stored: whatever form they stand in, and nothing else."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from proxy.compaction.insertion import Insertion
from proxy.redaction import Sealer
from proxy.store import queries
from proxy.store.forgetting import Wish, find, forget, scrub, traces
from proxy.store.redacting import Redactor
from proxy.store.sqlite import Store
from tests.store.build import KEY, asked, said, stated

SEALED = "[secret:password:0123456789abcdef]"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Ask Jane Doe.", "Ask [forgotten]."),
        ('{"content":"Jane\\u0020Doe said"}', '{"content":"[forgotten] said"}'),
        ('{"arguments":"{\\"to\\": \\"Jane \\\\u0044oe\\"}"}', '{"arguments":"{\\"to\\": \\"[forgotten]\\"}"}'),
        ('{"id":"Jane Doe","role":"Jane Doe"}', '{"id":"Jane Doe","role":"Jane Doe"}'),
        (f"key {SEALED}", "key [forgotten]"),
        (f'{{"n":1,"text":"{SEALED} and Jane Doe"}}', '{"n":1,"text":"[forgotten] and [forgotten]"}'),
        ('"[secret:json:0123456789abcdef]"', '"[forgotten]"'),
    ],
)
def test_words_go_out_of_text_json_json_in_json_and_sealed_values(text: str, left: str) -> None:
    redactor = Redactor(re.compile("Jane Doe"), lambda _: "x-Jane Doe-7")
    assert redactor.column(text, "messages") == left


def test_words_across_the_edge_of_a_sealed_value_take_the_whole_text_along() -> None:
    assert Redactor(re.compile("Jane Doe"), lambda _: "oe").column(f"hi Jane D{SEALED}!", "messages") == "[forgotten]"


def test_other_sessions_stay_and_what_is_sealed_goes_with_the_words(tmp_path: Path) -> None:
    store = Store.open(tmp_path, Sealer(KEY))
    shared = said("You are a coding agent.", "system")
    block = Insertion("i1", "B1", 0, 0, "", "message", "Quokka said so.", "pins")
    facts = (stated("p1", "Never touch Quokka."), stated("p2", "Be brief."))
    store.submit(asked(shared, said("PASSWORD=Quokka-9x8y7"), insertions=(block,), facts=facts)).result()
    store.submit(asked(shared, said("another goal"), session="S2", branch="B2")).result()
    wish, seal = Wish(pattern=re.compile("quokka", re.IGNORECASE)), Sealer(KEY)
    before = find(store._db, seal, wish)
    assert (len(before.facts), sorted(before.redacted)) == (1, ["insertions", "messages"])
    assert traces(tmp_path, re.compile("Quokka")) != []
    store.submit(asked(said("Quokka again"), session="S3", branch="B3")).result()
    gone = forget(store._db, seal, wish, before)
    assert (gone.facts, len(gone.redacted["messages"])) == (before.facts, 2)
    assert scrub(store._db)
    assert traces(tmp_path, re.compile("quokka", re.IGNORECASE)) == []
    assert [fact["pin"] for fact in queries.facts(store._db)["facts"]] == ["p2"]
    assert queries.stats(store._db)["secrets"] == 0
    assert [json.loads(raw)["content"] for raw in store.load_messages("t1", store.path("B2", 9)).values()] == [
        "You are a coding agent.", "another goal"
    ]  # fmt: skip
    assert store.load_branch("t1", "B1") is None
    assert store.load_branch("t1", "B2") is not None
    assert find(store._db, seal, wish).nothing
    store.close()


def test_what_is_on_its_way_to_the_disk_when_its_session_is_forgotten_is_not_written(tmp_path: Path) -> None:
    store = Store.open(tmp_path, Sealer(KEY))
    store.submit(asked(said("goal"))).result()
    forget(store._db, Sealer(KEY), Wish(sessions=("S1",)))
    store.submit(asked(said("Quokka"), start=1, facts=(stated("p1", "Quokka"),))).result()
    assert queries.stats(store._db) | {"bytes": 0} == dict.fromkeys(queries.stats(store._db), 0)
    store.submit(asked(said("new goal"), session="S2", branch="B2")).result()
    assert queries.stats(store._db)["sessions"] == 1
    store.close()


def test_tables_that_come_later_are_emptied_as_well(tmp_path: Path) -> None:
    store = Store.open(tmp_path, Sealer(KEY))
    store.submit(asked(said("goal"))).result()
    db = store._db
    db.execute("CREATE TABLE later (a TEXT, session TEXT, note TEXT, PRIMARY KEY (a, session)) WITHOUT ROWID")
    db.executemany("INSERT INTO later VALUES ('x', ?, ?)", [("S1", "Quokka one"), ("S2", "two"), ("S3", "Quokka")])
    forget(db, Sealer(KEY), Wish(pattern=re.compile("Quokka")))
    assert db.execute("SELECT session, note FROM later").fetchall() == [
        ("S1", "[forgotten] one"), ("S2", "two"), ("S3", "[forgotten]")
    ]  # fmt: skip
    forget(db, Sealer(KEY), Wish(sessions=("S1",)))
    assert db.execute("SELECT session FROM later").fetchall() == [("S2",), ("S3",)]
    store.close()
