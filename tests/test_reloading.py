"""Rule files and client profiles that are saved while the proxy runs."""

from __future__ import annotations

import asyncio
import contextlib
import io
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

from proxy.clients import Profiles
from proxy.lineage.keys import KeyReader
from proxy.pins.rules import RuleSet
from proxy.reloading import Reloading
from proxy.settings import Settings, load_settings
from proxy.telemetry import Counters, Log
from tests.builders import CHAT, PROFILES

RULE = "rules: [{name: mine, kind: constraint, priority: 81, patterns: ['%s'], examples: {match: [with semicolons]}}]\n"
PROFILE = "name: acme\nmatch: {user_agent: ['^acme/']}\ntags: [memo]\n"


@dataclass
class Watched:
    """What a running proxy was handed."""

    folder: Path
    reloading: Reloading
    log: io.StringIO
    taken: asyncio.Queue[tuple[RuleSet, Profiles]] = field(default_factory=asyncio.Queue)
    warnings: list[str] = field(default_factory=list)

    def use(self, rules: RuleSet, profiles: Profiles) -> None:
        self.taken.put_nowait((rules, profiles))

    async def saved(self, name: str, text: str) -> tuple[RuleSet, Profiles]:
        (self.folder / name).write_text(text, "utf-8")
        return await asyncio.wait_for(self.taken.get(), 5)


def settings_in(folder: Path) -> Settings:
    (folder / "clients").mkdir()
    (folder / "mine.yaml").write_text(RULE % "with semicolons", "utf-8")
    (folder / "gk.yaml").write_text("pins: {files: [mine.yaml]}\nclients: {folders: [clients]}\n", "utf-8")
    return load_settings([folder / "gk.yaml"])


@contextlib.asynccontextmanager
async def watching(folder: Path) -> AsyncIterator[Watched]:
    written = io.StringIO()
    log = Log(written)
    watched = Watched(folder, Reloading(settings_in(folder), log, Counters()), written)
    watched.reloading.start([watched], watched.warnings, str.upper)
    try:
        yield watched
    finally:
        watched.reloading.close()
        log.close()


async def test_a_saved_rule_goes_live_and_a_broken_one_changes_nothing_and_is_told(tmp_path):
    async with watching(tmp_path) as watched:
        rules, profiles = await watched.saved("mine.yaml", RULE % "with (?:semicolons|tabs)")
        assert [rule.name for rule in rules.rules] == ["mine"]
        assert profiles is watched.reloading.guides.profiles
        assert watched.warnings == []
        kept, _ = await watched.saved("mine.yaml", RULE % "with (")
        assert kept is rules
        (warning,) = watched.warnings
        assert warning.startswith("not in force: ")
        assert "MINE.YAML:1:65: RULES[0].PATTERNS[0]" in warning
        told = watched.reloading.told()
        assert told["rules"][0]["name"] == "mine"
        assert len(told["problems"]) == 1
        unmatched, _ = await watched.saved("mine.yaml", RULE % "with pipes")
        assert unmatched is rules
        assert "NO PATTERN OF RULE 'MINE' MATCHES" in watched.warnings[0]
        mended, _ = await watched.saved("mine.yaml", RULE % "with [st]")
        assert mended is not rules
        assert watched.warnings == []
    assert watched.log.getvalue().count('"event": "reload"') == 4


async def test_a_saved_profile_goes_live_beside_rules_that_stay_as_they_are(tmp_path):
    async with watching(tmp_path) as watched:
        before = watched.reloading.guides
        rules, profiles = await watched.saved("clients/acme.yaml", PROFILE)
        assert rules is before.rules
        assert profiles.named("acme").tags[0] == "memo"
        _, kept = await watched.saved("clients/acme.yaml", "nam: acme\n")
        assert kept is profiles
        assert "UNKNOWN KEY 'NAM'" in watched.warnings[0]


def test_a_conversation_that_runs_on_keeps_how_it_was_read_and_a_new_one_is_read_anew():
    generic, codex = PROFILES.generic, PROFILES.named("codex")
    memo = CHAT.message(b'{"role":"user","content":"<memo>tabs</memo>Build it."}')
    done = CHAT.message(b'{"role":"assistant","content":"done"}')
    reader = KeyReader()
    opening, running = reader.path([memo], generic), reader.path([memo, done], generic)
    reader.path([memo], codex)
    reader.renew()
    assert reader.path([memo, done], generic) is running
    assert reader.path([memo], generic) is not opening
