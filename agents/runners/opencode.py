"""opencode: chat completions by default, Responses and Messages with other provider packages."""

from __future__ import annotations

import sys

from agents.runners.base import DRIVERS, KEY, MODEL, WINDOW, Agent, Environment, Package, Place, driven

PACKAGE = Package("npm", "opencode-ai")
PROVIDERS = {"chat": "@ai-sdk/openai-compatible", "responses": "@ai-sdk/openai", "messages": "@ai-sdk/anthropic"}


def _setup(place: Place, api: str) -> None:
    model = {"name": "Scripted", "tool_call": True, "limit": {"context": WINDOW, "output": 8000}}
    provider = {
        "npm": PROVIDERS[api],
        "name": "Scripted",
        "options": {"baseURL": f"{place.url}/v1", "apiKey": KEY},
        "models": {MODEL: model},
    }
    settings = {"autoupdate": False, "share": "disabled", "permission": "allow", "provider": {"here": provider}}
    named = {"model": f"here/{MODEL}", "small_model": f"here/{MODEL}"}
    place.write(".config/opencode/opencode.json", settings | named)


def _turn(place: Place, turn: int, words: str) -> list[str]:
    return [place.binary(PACKAGE, "opencode"), "run", *(["--continue"] if turn else []), words]


def _server(place: Place) -> list[str]:
    return [sys.executable, str(DRIVERS / "opencode_server.py"), place.binary(PACKAGE, "opencode")]


def _environment(_: Place) -> Environment:
    names = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS")
    return {f"OPENCODE_DISABLE_{name}": "1" for name in names}


def _agent(api: str, scenarios: tuple[str, ...]) -> Agent:
    return Agent(
        "opencode" if api == "chat" else f"opencode-{api}",
        (PACKAGE,),
        lambda place: _setup(place, api),
        _turn,
        _environment,
        scenarios=scenarios,
        talk=driven(_server),
        seconds=180,
        refused_exit=1,
        base_url="opencode.json: provider.NAME.options.baseURL",
    )


AGENTS = (
    _agent("chat", ("compactions", "steer", "sub-agent", "overflow", "refused", "late", "assist")),
    _agent("responses", ("compactions",)),
    _agent("messages", ("compactions",)),
)
