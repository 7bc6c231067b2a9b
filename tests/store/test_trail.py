"""The trail: calls find their results, and what they took."""

from __future__ import annotations

from typing import Any

from proxy.store.queries import EMPTY_RECEIPT
from proxy.store.trail import trail

# ULIDs of 10:00:00.000, 10:00:02.500 and 10:00:09.000 on 30 November 2026
FIRST, SECOND, THIRD = "01M8NYB980" + "0" * 16, "01M8NYBBP4" + "0" * 16, "01M8NYBJ18" + "0" * 16


def receipt(identity: str, at: str, *calls: dict[str, Any], **fields: Any) -> dict[str, Any]:
    known = {"id": identity, "at": f"2026-11-30T10:00:{at}Z", "branch": "B", "track": "B", "relation": "extends"}
    return EMPTY_RECEIPT | known | {"status": 200, "calls": list(calls)} | fields


def call(identity: str, outcome: str = "", origin: str = "answer", arguments: str = "aa") -> dict[str, Any]:
    return {"id": identity, "name": "run", "arguments": arguments, "outcome": outcome, "origin": origin}


def test_a_call_stands_where_it_was_made_with_outcome_and_time_of_its_result():
    rows = trail([receipt(FIRST, "01.000", call("c1")), receipt(SECOND, "03.000", call("c1", "exit 1", "request"))])
    assert [row["what"] for row in rows] == ["request", "call", "request"]
    assert {name: rows[1][name] for name in ("outcome", "ms", "made_in", "brought_in")} == {
        "outcome": "exit 1", "ms": 1500, "made_in": FIRST, "brought_in": SECOND
    }  # fmt: skip
    assert (rows[0]["at"], rows[0]["ms"]) == ("2026-11-30T10:00:00.000Z", 1000)


def test_a_call_without_a_result_waits_and_a_result_without_a_call_stands_alone():
    rows = trail([receipt(FIRST, "01.000", call("c1")), receipt(SECOND, "03.000", call("c9", "ok", "request"))])
    waiting, alone = [row for row in rows if row["what"] == "call"]
    assert (waiting["outcome"], waiting["ms"], waiting["brought_in"]) == ("", None, "")
    assert (alone["outcome"], alone["ms"], alone["made_in"]) == ("ok", None, "")


def test_an_id_that_is_used_again_belongs_to_the_newest_call():
    rows = trail(
        [
            receipt(FIRST, "01.000", call("call_0", arguments="aa")),
            receipt(SECOND, "03.000", call("call_0", "ok", "request", "aa"), call("call_0", arguments="bb")),
            receipt(THIRD, "10.000", call("call_0", "exit 2", "request", "bb")),
        ]
    )
    calls = [(row["arguments"], row["outcome"], row["ms"]) for row in rows if row["what"] == "call"]
    assert calls == [("aa", "ok", 1500), ("bb", "exit 2", 6000)]


def test_a_rewrite_is_a_line_of_its_own_with_what_it_made():
    cut = {"compaction": "compaction", "insertions": ("i1",), "tokens_in": 90, "tokens_out": 40, "pins_active": 2}
    rows = trail([receipt(FIRST, "01.000", **cut), receipt(SECOND, "03.000", insertions=("i1",))])
    assert [row["what"] for row in rows] == ["request", "rewrite", "request"]
    assert rows[1]["outcome"] == "90 → 40 tokens, 0/2 pins, made i1"
