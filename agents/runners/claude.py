"""Claude Code: Messages."""

from __future__ import annotations

from typing import Any

from agents.model import Manner
from agents.runners.base import KEY, NODE, Agent, Environment, Package, Place, Talk
from agents.script import NOTES

PACKAGE = Package("npm", "@anthropic-ai/claude-code", new_node=True)
_SWITCHES = ("DISABLE_TELEMETRY", "DISABLE_ERROR_REPORTING", "DISABLE_AUTOUPDATER", "DISABLE_BUG_COMMAND", "IS_SANDBOX")
_MODEL = "claude-sonnet-4-6"


def _setup(place: Place) -> None:
    place.write(".claude/.claude.json", {"hasCompletedOnboarding": True, "autoUpdates": False})


def _program(place: Place) -> str:
    inside = "node_modules/@anthropic-ai/claude-code-linux-x64/claude"
    return str(place.cache / PACKAGE.folder / inside)


def _start(place: Place) -> list[str]:
    return [_program(place), "-p", "--model", _MODEL, "--dangerously-skip-permissions"]


def _turn(place: Place, turn: int, words: str) -> list[str]:
    return [*_start(place), *(["--continue"] if turn else []), words]


def _environment(place: Place) -> Environment:
    own = {"ANTHROPIC_BASE_URL": place.url, "ANTHROPIC_API_KEY": KEY, "CLAUDE_CONFIG_DIR": str(place.home / ".claude")}
    return own | dict.fromkeys((*_SWITCHES, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"), "1")


def _lines(place: Place) -> list[str]:
    return [*_start(place), "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]


def _say(words: str, _interrupts: bool) -> dict[str, Any]:  # noqa: FBT001 (one of two ways to talk, see Talk)
    return {"type": "user", "message": {"role": "user", "content": [{"type": "text", "text": words}]}}


AGENTS = (
    Agent(
        "claude-code",
        (NODE, PACKAGE),
        _setup,
        _turn,
        _environment,
        scenarios=("compactions", "steer", "sub-agent", "overflow", "refused", "late"),
        manner=Manner(190_000, f"<analysis>\nAll was looked at.\n</analysis>\n\n<summary>\n{NOTES}\n</summary>"),
        talk=Talk(_lines, _say, lambda line: line.get("type") == "result"),
        project_rules="CLAUDE.md",
        base_url="ANTHROPIC_BASE_URL",
    ),
)
