"""Decisions out of pull-request exports."""

from __future__ import annotations

import json
from typing import Any

import pytest

from proxy.facts.jsontext import Broken, lines_of, values_of
from proxy.facts.reviews import Export, decisions_in

URL = "https://github.com/acme/shop/pull/12"
PULL: dict[str, Any] = {
    "number": 12, "title": "Switch to MongoDB", "state": "closed", "merged_at": None, "user": {"login": "bob"},
    "html_url": URL, "body": "This switches.",
}  # fmt: skip
REVIEW: dict[str, Any] = {
    "id": 1, "user": {"login": "alice"}, "state": "CHANGES_REQUESTED", "html_url": f"{URL}#pullrequestreview-1",
    "body": "> let us switch\n\nWe stay on PostgreSQL.", "submitted_at": "2026-05-01T10:00:00Z", "commit_id": "a" * 40,
}  # fmt: skip


def read(*values: Any, binds: bool = True) -> Export:
    return decisions_in(values_of(json.dumps(list(values))), "", lambda _: binds)


def test_a_rejection_in_a_closed_pull_request_becomes_a_decision_with_its_source() -> None:
    ((_, fact),) = read(PULL, REVIEW, binds=False).facts
    assert (fact.kind, fact.status, fact.text) == ("decision", "active", "We stay on PostgreSQL.")
    assert (fact.quote, fact.who, fact.project) == (REVIEW["body"], "alice", "acme/shop")
    assert fact.rejected == ("Switch to MongoDB (acme/shop#12)",)
    assert fact.source["url"] == f"{URL}#pullrequestreview-1"
    assert (fact.source["pull"], fact.source["git_commit"]) == ("acme/shop#12", "a" * 40)


@pytest.mark.parametrize(
    ("change", "binds", "decides"),
    [
        ({"state": "APPROVED"}, True, False),
        ({"state": "DISMISSED"}, True, False),
        ({"state": "COMMENTED"}, True, True),
        ({"state": "COMMENTED"}, False, False),
        ({"state": "COMMENTED", "user": {"login": "bob"}}, True, False),
        ({"user": {"login": "ci[bot]", "type": "Bot"}}, True, False),
        ({"body": "> only a quote"}, True, False),
    ],
)
def test_what_decides_nothing_is_passed(change: dict[str, Any], binds: bool, decides: bool) -> None:
    export = read(PULL, REVIEW | change, binds=binds)
    assert (len(export.facts), export.passed) == ((1, 0) if decides else (0, 1))


def test_the_form_of_gh_pr_view_is_read_as_well() -> None:
    viewed = {
        "number": 7, "title": "Round amounts", "state": "CLOSED", "url": "https://github.com/acme/shop/pull/7",
        "reviews": [{"author": {"login": "al"}, "state": "CHANGES_REQUESTED", "body": "No rounding.",
                     "submittedAt": "2026-05-02T00:00:00Z"}],
    }  # fmt: skip
    ((_, fact),) = decisions_in(values_of(json.dumps(viewed)), "shop", lambda _: False).facts
    assert (fact.text, fact.project, fact.source["pull"]) == ("No rounding.", "shop", "acme/shop#7")
    assert fact.observed_at == "2026-05-02T00:00:00Z"


def test_pages_in_a_row_are_read_and_what_breaks_is_named_by_its_line() -> None:
    text = f"{json.dumps([PULL])}{json.dumps([REVIEW])}\n[\n  7,\n  {{\n"
    export = decisions_in(values_of(text), "", lambda _: False)
    assert len(export.facts) == 1
    assert [one.line for one in export.broken] == [3, 5]
    assert "a review must be an object" in export.broken[0].reason


def test_lines_are_read_one_by_one() -> None:
    found = list(lines_of('{"a":1}\n\n{"b":\r\n"\\ud800"\n[' + "[" * 200_000))
    assert found[0] == (1, {"a": 1})
    assert [one.line for _, one in found[1:] if isinstance(one, Broken)] == [3, 4, 5]
