"""The documentation keeps step with the code: settings, commands, links."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from proxy.cli.main import COMMANDS, _parser
from proxy.settings.model import Group, Settings

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("context/*.md"), *ROOT.glob("proxy/**/*.md")])
ROW = re.compile(r"^\| `([a-z_.]+)` \| `(.*?)` \| (\S.*) \|$", re.MULTILINE)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)")
COMMAND = re.compile(r"^(?:\$ )?(goalkeeper .*)$", re.MULTILINE)


def page(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def flat(group: Group, before: str = "") -> Iterator[tuple[str, object]]:
    for name, value in group:
        if isinstance(value, Group):
            yield from flat(value, f"{before}{name}.")
        else:
            yield before + name, value


def test_the_page_on_configuration_names_every_key_with_its_default():
    told = {key: yaml.safe_load(default) for key, default, _ in ROW.findall(page("docs/configuration.md"))}
    known = Settings().model_dump(mode="json")
    assert list(told) == [key for key, _ in flat(Settings())]
    for key, default in told.items():
        value = known
        for step in key.split("."):
            value = value[step]
        assert default == value, key


def test_the_page_on_commands_has_every_command():
    told = re.findall(r"^## goalkeeper (\w+)", page("docs/cli.md"), re.MULTILINE)
    assert sorted(told) == sorted(COMMANDS)


def commands_in(text: str) -> list[list[str]]:
    """The lines of code blocks that call goalkeeper, without what is said or piped behind them."""
    blocks = "\n".join(re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
    lines = (re.split(r"\s{2,}|\s[|>]", line)[0] for line in COMMAND.findall(blocks))
    return [shlex.split(line, comments=True) for line in lines]


@pytest.mark.parametrize("name", ["README.md", "docs/cli.md", "docs/facts.md"])
def test_each_command_in_the_documentation_can_be_read_by_the_command_line(name):
    found = commands_in(page(name))
    for words in found:
        _parser(words[1:]).parse_args(words[1:])
    assert found


@pytest.mark.parametrize("file", PAGES, ids=[str(file.relative_to(ROOT)) for file in PAGES])
def test_each_link_in_the_documentation_leads_somewhere(file):
    missing = [link for link in LINK.findall(file.read_text("utf-8")) if not (file.parent / link).exists()]
    assert missing == []
