"""Facts: what becomes one, and which project they belong to."""

from __future__ import annotations

import pytest

from proxy.facts import Source, changes, project_of
from tests.store.build import Stand, Words

AT = "2026-01-02T03:04:05.000Z"
SOURCE = Source("S1", "B1", client="opencode", model="m1", project="/srv/shop")


def test_new_pin_makes_a_fact_with_its_source() -> None:
    (change,) = changes(Stand(), Stand((Words("p1", "Use tabs."),)), SOURCE, AT)
    assert (change.what, change.at, change.fact.text, change.fact.quote) == ("new", AT, "Use tabs.", "Use tabs.")
    assert change.fact.source == {
        "session": "S1", "branch": "B1", "message": "d" * 32, "client": "opencode", "model": "m1"
    }  # fmt: skip
    assert (change.fact.who, change.fact.evidence, change.fact.project) == ("user", "user", "/srv/shop")


def test_unchanged_pin_makes_none() -> None:
    stand = Stand((Words("p1", "Use tabs."),))
    assert changes(stand, stand, SOURCE, AT) == ()


def test_superseding_pin_names_the_old_one_and_the_old_one_names_it() -> None:
    old = Stand((Words("p1", "Use tabs."),))
    new = Stand((Words("p1", "Use tabs.", status="superseded", superseded_by="p2"), Words("p2", "Use blanks.")))
    fallen, fresh = changes(old, new, SOURCE, AT)
    assert (fallen.what, fallen.fact.status, fallen.fact.superseded_by) == ("superseded", "superseded", "p2")
    assert (fresh.what, fresh.fact.supersedes) == ("new", ("p1",))


def test_pin_that_fell_in_part_is_told_as_narrowed() -> None:
    old = Stand((Words("p1", "Use tabs. Be brief."),))
    new = Stand((Words("p1", "Use tabs. Be brief.", superseded_by="p2", fallen="Use tabs."), Words("p2", "Blanks.")))
    assert [change.what for change in changes(old, new, SOURCE, AT)] == ["narrowed", "new"]


@pytest.mark.parametrize(
    ("system", "project"),
    [
        ("You help.\nWorking directory: /srv/shop\nBe brief.", "/srv/shop"),
        ("<env>\n  Working directory: /srv/shop/\n</env>", "/srv/shop"),
        ("<cwd>/home/a b/shop</cwd>", "/home/a b/shop"),
        ("cwd: /srv/blog.", "/srv/blog"),
        ('{"cwd": "/srv/blog"}', "/srv/blog"),
        ("The working directory is `~/code`", "~/code"),
        ("Working directory: C:\\shop\\web", "C:\\shop\\web"),
        ("no folder named", ""),
        ("You are a coding agent working in /srv/shop.", ""),
    ],
)
def test_working_directory_in_the_system_text_names_the_project(system: str, project: str) -> None:
    assert project_of(system) == project


def test_named_project_wins_over_the_working_directory() -> None:
    assert project_of("Working directory: /srv/shop", "blog") == "blog"
