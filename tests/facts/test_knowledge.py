"""Facts as entries of a repository: Keep the Why, and a section of AGENTS.md."""

from __future__ import annotations

from typing import Any

import pytest

from proxy.errors import BadRequest
from proxy.facts.agents_md import BEGIN, END, settings_in, with_fact
from proxy.facts.knowledge import entry_of, indexed, objection, placed

ID = "01M8Q4W0EMEPX410GSE9W08F88"
FACT: dict[str, Any] = {
    "id": ID, "kind": "correction", "status": "active", "scope": "session", "evidence": "user", "superseded_by": "",
    "text": "Amounts keep all their digits.", "quote": "No, don't round!", "title": "No rounding", "reason": "law",
    "rejected": ["rounding to cents"], "consequence": "", "revisit": "the ledger is replaced",
    "observed_at": "2026-03-04T10:00:00Z", "source": {"url": "https://example.org/1"}, "who": "alice",
}  # fmt: skip
ENTRY = """\
**Type:** constraint
**Status:** active
**Evidence:** confirmed
**Source:** goalkeeper fact 01M8Q4W0EMEPX410GSE9W08F88, https://example.org/1
**Verification:** uncorroborated
**Revisit when:** the ledger is replaced

Amounts keep all their digits.

**Reason:** law

**Rejected alternative:** rounding to cents"""


def test_an_entry_has_the_fields_in_their_order_and_names_nobody() -> None:
    assert entry_of(FACT).body == ENTRY
    assert "Source" not in entry_of(FACT, source=False).body
    ended = entry_of(FACT | {"status": "superseded", "superseded_by": "B", "history": [{"at": "2026-04-01"}]})
    assert "**Status:** superseded" in ended.body
    assert "> Superseded in 2026-04 by fact B." in ended.body


def test_an_entry_is_placed_once_updated_by_its_mark_and_left_alone_when_a_person_edited_it() -> None:
    other = "# Constraints\n\n## Another\n\n```\n## no heading\n```\n"
    topic, outcome = placed(other, "Constraints", entry_of(FACT))
    assert (outcome, topic.startswith(other)) == ("added", True)
    assert placed(topic, "Constraints", entry_of(FACT)) == (topic, "unchanged")
    topic += "\n## Behind\n\nText.\n"
    changed = entry_of(FACT | {"reason": "the tax law"})
    newer, outcome = placed(topic, "Constraints", changed)
    assert (outcome, newer) == (
        "updated",
        topic.replace("law", "the tax law").replace(entry_of(FACT).mark, changed.mark),
    )
    edited = newer.replace("Amounts keep", "All amounts keep")
    assert placed(edited, "Constraints", changed) == (edited, "unchanged")
    assert placed(edited, "Constraints", entry_of(FACT)) == (edited, "edited by hand")
    assert placed("# C\n\n## No rounding\n\nx\n", "C", entry_of(FACT))[1] == "title taken"


def test_words_of_a_fact_never_make_structure() -> None:
    entry = entry_of(FACT | {"text": "# Title\n**Status:** x\n<!-- goalkeeper: A -->\n\x1b[31mred", "title": ""})
    assert "\n\\# Title\n\\**Status:** x\n&lt;!-- goalkeeper: A --&gt;\n\\x1b[31mred" in entry.body
    assert "\n" not in entry.title


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kind": "goal"}, "a goal is of its session"),
        ({"scope": "once"}, "for once"),
        ({"text": "Use [secret:password:0123456789abcdef]"}, "secret"),
        ({"reason": "password=hunter2-demo7"}, "secret"),
        ({"text": "no dont round", "quote": "No, don't round!"}, ""),
        ({"text": "No, don't round", "quote": "No, don't round!"}, "own words"),
        ({"text": "x" * 2001}, "no statement"),
    ],
)
def test_what_can_not_be_promoted_is_said(change: dict[str, Any], words: str) -> None:
    found = objection(FACT | change, written=True)
    assert words in found if words else not found
    assert not objection(FACT | {"text": FACT["quote"]}, written=False)


def test_the_index_gets_one_line_a_file() -> None:
    index = indexed("", "constraints.md", "Constraints")
    assert index == "# Index\n\n- [constraints.md](constraints.md): constraints that were promoted from sessions\n"
    assert indexed(index, "constraints.md", "Constraints") == index


def test_a_section_of_agents_md_is_made_once_and_the_rest_stays() -> None:
    text, outcome = with_fact("# Rules\n\nBe brief.\n", FACT)
    assert (outcome, text.count(BEGIN), text.count(END)) == ("added", 1, 1)
    assert text.startswith("# Rules\n\nBe brief.\n\n<!-- goalkeeper:facts -->\n")
    assert "- Amounts keep all their digits. (correction, since 2026-03-04) <!-- goalkeeper: " in text
    assert with_fact(text, FACT) == (text, "unchanged")
    more = with_fact(text, FACT | {"id": "01M8Q4W0EMEPX410GSE9W08F99", "text": "Other."})[0] + "Behind.\n"
    gone, outcome = with_fact(more, FACT | {"status": "superseded"})
    assert (outcome, "Amounts" in gone, "Other." in gone) == ("updated", False, True)
    assert gone.endswith("Behind.\n")
    edited = text.replace("all their", "ALL their")
    assert with_fact(edited, FACT | {"text": "New."}) == (edited, "edited by hand")
    with pytest.raises(BadRequest, match="broken"):
        with_fact(f"{BEGIN}\n", FACT)


def test_settings_for_keep_the_why_are_read() -> None:
    told = "- context folder: docs/why\n- context-schema: 0.9.0"
    text = f"x\n<!-- keep-the-why:config -->\n{told}\n<!-- /keep-the-why:config -->"
    assert settings_in(text) == {"context-folder": "docs/why", "context-schema": "0.9.0"}
