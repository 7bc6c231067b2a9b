"""Where a client says that it works."""

from __future__ import annotations

import pytest

from proxy.facts import Place, place_of

CLAUDE = """<env>
Working directory: /srv/shop
</env>
gitStatus: This is the git status at the start of the conversation.
Current branch: feature/money

Recent commits:
1a2b3c4 Use decimals
"""


@pytest.mark.parametrize(
    ("system", "opening", "place"),
    [
        (CLAUDE, [], Place("/srv/shop", "feature/money", "1a2b3c4")),
        ("You are codex.", ["<environment_context>\n<cwd>/srv/app</cwd>\n</environment_context>"], Place("/srv/app")),
        ("", ["<environment_details>\n# Current Working Directory (/srv/web) Files\n</environment_details>"],
         Place("/srv/web")),
        ("", ["Working directory: /etc, says a person; current branch: main"], Place()),
        ("Working directory: /srv/shop", ["<env>Working directory: /other\nGit branch: dev</env>"],
         Place("/srv/shop", "dev")),
    ],
)  # fmt: skip
def test_folder_branch_and_commit_are_read_from_what_machines_write(
    system: str, opening: list[str], place: Place
) -> None:
    assert place_of(system, opening) == place
