"""qwen-code: chat completions."""

from __future__ import annotations

from typing import Any

from agents.model import Manner
from agents.runners.base import KEY, MODEL, NODE, WINDOW, Agent, Environment, Package, Place, Talk
from agents.script import NOTES

PACKAGE = Package("npm", "@qwen-code/qwen-code", new_node=True)


def _setup(place: Place) -> None:
    settings = {
        "$version": 3,
        "general": {"disableAutoUpdate": True, "enableAutoUpdate": False, "disableUpdateNag": True},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "security": {"auth": {"selectedType": "openai"}},
        "model": {"name": MODEL, "generationConfig": {"contextWindowSize": WINDOW}},
    }
    place.write(".qwen/settings.json", settings)


def _start(place: Place) -> list[str]:
    url = ["--openai-base-url", f"{place.url}/v1"]
    return [place.binary(PACKAGE, "qwen"), "--auth-type", "openai", "--openai-api-key", KEY, *url, "-m", MODEL, "-y"]


def _turn(place: Place, turn: int, words: str) -> list[str]:
    return [*_start(place), *(["--continue"] if turn else []), "-p", words]


def _environment(place: Place) -> Environment:
    return {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{place.url}/v1", "OPENAI_MODEL": MODEL}


def _lines(place: Place) -> list[str]:
    return [*_start(place), "--input-format", "stream-json", "--output-format", "stream-json"]


def _say(words: str, _interrupts: bool) -> dict[str, Any]:  # noqa: FBT001 (one of two ways to talk, see Talk)
    message = {"role": "user", "content": words}
    return {"type": "user", "message": message, "session_id": "s1", "parent_tool_use_id": None}


AGENTS = (
    Agent(
        "qwen-code",
        (NODE, PACKAGE),
        _setup,
        _turn,
        _environment,
        scenarios=("compactions", "steer", "sub-agent", "overflow", "refused", "late"),
        # It subtracts what the summary's own request is said to have cost.
        manner=Manner(
            notes=f"<state_snapshot>\n<overall_goal>{NOTES}</overall_goal>\n</state_snapshot>", notes_tokens=122_000
        ),
        talk=Talk(_lines, _say, lambda line: line.get("type") == "result"),
        project_rules="QWEN.md",
        base_url="--openai-base-url or OPENAI_BASE_URL",
    ),
)
