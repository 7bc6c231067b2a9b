"""The store: what is acknowledged is there, for every process, and gives back the same bytes."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from proxy.compaction.insertion import Insertion
from proxy.compaction.receipt import Receipt, ToolCall
from proxy.errors import StoreError
from proxy.lineage.records import AnswerKey, BranchState, Changes
from proxy.redaction import Sealer
from proxy.store import queries
from proxy.store.ids import new_ulid
from proxy.store.rows import Batch, Learnt
from proxy.store.schema import FILE, attach, connect, version_of
from proxy.store.sqlite import Store
from proxy.store.views import file_name
from tests.store.build import KEY, TENANT, asked, said, stated

SECRET = "hunter2-demo"
WRITER = """
import sys
from pathlib import Path
from proxy.redaction import Sealer
from proxy.store.sqlite import Store
from tests.store.build import KEY, asked, said, stated
name, count = sys.argv[2], int(sys.argv[3])
store = Store.open(Path(sys.argv[1]), Sealer(KEY))
for n in range(count):
    fact = stated(f"p{n}", f"No, use value {n}.", session=name)
    batch = asked(said(f"{name} {n}"), session=name, branch=name, start=n, facts=(fact,))
    store.submit(batch).result()
    print(n, flush=True)
store.close()
"""


def open_store(folder: Path) -> Store:
    return Store.open(folder, Sealer(KEY))


def start_writer(folder: Path, name: str, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(folder), name, str(count)]
    root = Path(__file__).parents[2]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root)


def test_folder_and_file_are_the_owners_alone(tmp_path: Path) -> None:
    open_store(tmp_path / "data").close()
    assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "data" / FILE).stat().st_mode) == 0o600


def test_migrations_run_once_and_a_newer_database_is_refused(tmp_path: Path) -> None:
    db = connect(tmp_path)
    version = version_of(db)
    assert version >= 1
    connect(tmp_path).close()
    db.execute("PRAGMA user_version = 999")
    with pytest.raises(StoreError, match="999"):
        connect(tmp_path)


def test_attaching_to_nothing_says_so(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="nothing was stored"):
        attach(tmp_path)


def test_branch_comes_back_with_path_marks_and_insertions(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    first, second = said("Goal: shop."), said(f"DB_PASSWORD={SECRET}\nNo API key is set for mail.", "tool")
    block = Insertion("i1", "B1", 0, 1, "", "message", f"the password is {SECRET}", "restore", covers=(first.digest,))
    store.submit(asked(first, second, insertions=(block,))).result()
    (loaded,) = store.load_branches(TENANT, "", [b"h" * 16])
    assert loaded.path == (first.digest, second.digest)
    assert loaded.insertions == (block,)
    assert loaded.stored.record.session == "S1"
    assert [mark.hash for mark in loaded.stored.marks] == [b"m" * 16]
    assert store.load_messages(TENANT, loaded.path) == {m.digest: m.raw for m in (first, second)}
    assert store.tokens_of(TENANT, loaded.path) == {first.digest: 7, second.digest: 7}
    assert queries.receipts(store._db)["receipts"][0]["session"] == "S1"
    store.close()


def test_other_tenants_and_namespaces_find_nothing(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    message = said("hello")
    store.submit(asked(message)).result()
    assert store.load_branches("other", "", [b"h" * 16]) == []
    assert store.load_branches(TENANT, "name", [b"h" * 16]) == []
    assert store.load_messages("other", [message.digest]) == {}
    assert store.load_branch("other", "B1") is None
    store.close()


def test_path_as_of_an_older_receipt_stays_readable(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    old, new = said("one"), said("two")
    early = asked(old)
    store.submit(early).result()
    store.submit(asked(new)).result()
    assert store.path("B1", 1) == (new.digest,)
    assert store.path("B1", 1, early.request) == (old.digest,)
    store.close()


def test_bad_batch_fails_alone_with_an_error_of_ours(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    good = [store.submit(asked(said(f"m{n}"), session=f"S{n}", branch=f"B{n}")) for n in range(3)]
    bad = store.submit(Batch(learnt=Learnt("u", "m", ratio=object())))  # type: ignore[arg-type]
    more = store.submit(Batch(learnt=Learnt("u", "m", ratio=1.5)))
    with pytest.raises(StoreError):
        bad.result()
    for future in (*good, more):
        future.result()
    assert store.learnt("u", "m") == Learnt("u", "m", ratio=1.5)
    assert len(queries.sessions(store._db)["sessions"]) == 3
    store.close()


def test_a_batch_that_nobody_waits_for_does_not_fail_in_silence(tmp_path: Path) -> None:
    told: list[Exception] = []
    store = Store.open(tmp_path, Sealer(KEY), told.append)
    store.later(Batch(facts=("rubbish",)))  # type: ignore[arg-type]
    store.submit(asked(said("hello"))).result()
    store.close()
    assert [type(error) for error in told] == [AttributeError]


def test_no_secret_value_lies_readable_in_any_file(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    text = f"DB_PASSWORD={SECRET}\nNo API key is set for mail."
    call = ToolCall("c1", "bash", "ab", f"error: password={SECRET}")
    batch = asked(
        said(text, "tool"),
        insertions=(Insertion("i1", "B1", 0, 0, "", "message", text, "pins"),),
        facts=(stated("p1", text),),
        receipt=Receipt(id=new_ulid(), at="", session="S1", branch="B1", notes=(text,), calls=(call,)),
    )
    store.submit(batch).result()
    closing = BranchState("B1", answer=(AnswerKey("a", b"h", text=text),))
    store.submit(Batch(tenant=TENANT, lineage=(Changes(state=closing),))).result()
    loaded = store.load_branch(TENANT, "B1")
    assert loaded is not None
    assert loaded.stored.state == closing
    queries.edit_pin(store._db, Sealer(KEY), queries.Edit("S1", "add", "", "constraint", text))
    assert store.pin_edits("S1")[0].text == text
    content = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert SECRET.encode() not in content
    assert b"No API key is set for mail." in content
    store.close()


MADE_HERE = {
    *("id", "at", "session", "branch", "track", "dialect", "relation", "session_match", "mode", "flags", "insertions"),
    *("compaction", "pins", "forwarded", "sent", "frame", "gap"),
}


@pytest.mark.parametrize("field", [name for name in Receipt.__struct_fields__ if name not in MADE_HERE])
def test_every_text_of_a_receipt_that_isnt_made_here_is_searched_for_secrets(field: str, tmp_path: Path) -> None:
    text, kind = f"password={SECRET}", type(getattr(Receipt("", ""), field))
    values = {str: text, tuple: (ToolCall(text, text, "ab", text),) if field == "calls" else (text,)}
    store = open_store(tmp_path)
    receipt = Receipt(new_ulid(), "", "S1", "B1", **({field: values[kind]} if kind in values else {}))
    store.submit(Batch(tenant=TENANT, receipt=receipt)).result()
    (stored,) = store._db.execute("SELECT record FROM receipts").fetchone()
    assert stored.count("[secret:") == {str: 1, tuple: 3 if field == "calls" else 1}.get(kind, 0)
    assert SECRET not in stored
    store.close()


def test_facts_are_told_once_though_a_restarted_proxy_tells_them_again(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    for _ in range(2):
        store.submit(asked(facts=(stated("p1", "Use tabs."),))).result()
    store.submit(
        asked(
            facts=(
                stated("p1", "Use tabs.", "superseded", superseded_by="p2"),
                stated("p2", "Blanks.", supersedes=("p1",)),
            )
        )
    ).result()
    old, new = queries.facts(store._db)["facts"]
    assert (old["status"], old["superseded_by"], new["supersedes"]) == ("superseded", new["id"], old["id"])
    history = queries.fact(store._db, old["id"])["history"]
    assert [event["what"] for event in history] == ["new", "superseded"]
    lines = (tmp_path / "facts" / file_name("/srv/shop")).read_text().splitlines()
    assert [json.loads(line)["what"] for line in lines] == ["new", "superseded", "new"]
    assert [fact["pin"] for fact in queries.facts(store._db, {"text": "blanks"})["facts"]] == ["p2"]
    store.close()


def test_events_that_a_killed_process_left_unlisted_are_listed_at_the_next_start(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.submit(asked(facts=(stated("p1", "Use tabs."),))).result()
    store.close()
    view = tmp_path / "facts" / file_name("/srv/shop")
    before = view.read_text()
    view.unlink()
    with sqlite3.connect(tmp_path / FILE) as db:
        db.execute("INSERT INTO unlisted SELECT seq, '2026-01-01' FROM fact_events")
    db.close()
    open_store(tmp_path).close()
    assert view.read_text() == before


@pytest.mark.parametrize(
    "name", ["../../etc/x", "chat/support_agent", "chat_support_agent", "chat:support:agent", "", "é", "a" * 300]
)
def test_project_file_names_are_safe_and_distinct(name: str) -> None:
    found = file_name(name)
    assert "/" not in found
    assert not found.startswith(".")
    assert len(found) < 64
    assert (
        sum(file_name(other) == found for other in ("../../etc/x", "chat/support_agent", "chat_support_agent", name))
        <= 2
    )


def test_killed_writer_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    writer = start_writer(tmp_path, "K", 100_000)
    assert writer.stdout
    told = [writer.stdout.readline() for _ in range(40)]
    os.kill(writer.pid, signal.SIGKILL)
    told += writer.stdout.read().splitlines()
    writer.wait()
    writer.stdout.close()
    acknowledged = len([line for line in told if line.strip().isdigit()])
    store = open_store(tmp_path)
    assert len(queries.facts(store._db)["facts"]) >= acknowledged >= 40
    assert len(store.path("K", 100_000)) >= acknowledged
    lines = (tmp_path / "facts" / file_name("/srv/shop")).read_bytes().splitlines(keepends=True)
    assert len({json.loads(line)["pin"] for line in lines}) >= acknowledged
    assert all(line.endswith(b"\n") for line in lines)
    store.close()


def test_two_processes_write_at_once_and_see_no_lock(tmp_path: Path) -> None:
    writers = [start_writer(tmp_path, name, 60) for name in ("A", "B")]
    outputs = [writer.communicate(timeout=60)[0] for writer in writers]
    assert [writer.returncode for writer in writers] == [0, 0]
    assert [len(output.split()) for output in outputs] == [60, 60]
    db = attach(tmp_path)
    assert len(queries.facts(db)["facts"]) == 120
    db.close()
    lines = (tmp_path / "facts" / file_name("/srv/shop")).read_text().splitlines()
    assert len([json.loads(line) for line in lines]) == 120
