"""pi: any of the three APIs, by its configuration."""

from __future__ import annotations

from typing import Any

from agents.runners.base import KEY, MODEL, WINDOW, Agent, Environment, Package, Place, Talk

PACKAGE = Package("npm", "@mariozechner/pi-coding-agent")
APIS = {"chat": "openai-completions", "responses": "openai-responses", "messages": "anthropic-messages"}


def _setup(place: Place, api: str) -> None:
    model = {"id": MODEL, "name": "Scripted", "reasoning": False, "input": ["text"], "contextWindow": WINDOW}
    model |= {"maxTokens": 8000, "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}}
    url = place.url if api == "messages" else f"{place.url}/v1"
    provider = {"baseUrl": url, "api": APIS[api], "apiKey": KEY, "models": [model]}
    place.write(".pi/agent/models.json", {"providers": {"here": provider}})
    compaction = {"enabled": True, "reserveTokens": 8192, "keepRecentTokens": 3000}
    named = {"enableInstallTelemetry": False, "defaultProvider": "here", "defaultModel": MODEL}
    place.write(".pi/agent/settings.json", named | {"compaction": compaction})


def _start(place: Place) -> list[str]:
    return [place.binary(PACKAGE, "pi"), "--offline", "--provider", "here", "--model", MODEL]


def _turn(place: Place, turn: int, words: str) -> list[str]:
    return [*_start(place), *(["-c"] if turn else []), "-p", words]


def _environment(_: Place) -> Environment:
    return {"PI_OFFLINE": "1", "PI_SKIP_VERSION_CHECK": "1"}


def _say(words: str, interrupts: bool) -> dict[str, Any]:  # noqa: FBT001 (one of two ways to talk, see Talk)
    return {"type": "steer" if interrupts else "prompt", "message": words}


def _agent(api: str, scenarios: tuple[str, ...]) -> Agent:
    return Agent(
        "pi" if api == "chat" else f"pi-{api}",
        (PACKAGE,),
        lambda place: _setup(place, api),
        _turn,
        _environment,
        scenarios=scenarios,
        talk=Talk(lambda place: [*_start(place), "--mode", "rpc"], _say, lambda line: line.get("type") == "agent_end"),
        base_url="~/.pi/agent/models.json: providers.NAME.baseUrl",
    )


AGENTS = (
    _agent("chat", ("compactions", "steer", "overflow", "refused", "late", "assist")),
    _agent("responses", ("compactions", "steer", "overflow")),
    _agent("messages", ("compactions", "steer", "overflow")),
)
