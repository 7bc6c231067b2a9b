"""Continue's command line (cn): chat completions."""

from __future__ import annotations

import json

from agents.runners.base import KEY, MODEL, Agent, Environment, Package, Place

PACKAGE = Package("npm", "@continuedev/cli")
_WINDOW = 16_000  # it counts by itself, whatever usage is reported
_TELEMETRY = ("TELEMETRY_ENABLED", "METRICS_ENABLED", "CLI_ENABLE_TELEMETRY", "ALLOW_ANONYMOUS_TELEMETRY")


def _setup(place: Place) -> None:
    model = {
        "name": "scripted",
        "provider": "openai",
        "model": MODEL,
        "apiBase": f"{place.url}/v1",
        "apiKey": KEY,
        "roles": ["chat", "edit", "apply"],
        "capabilities": ["tool_use"],
        "defaultCompletionOptions": {"contextLength": _WINDOW, "maxTokens": 2000},
    }
    place.write(
        ".continue/config.yaml", json.dumps({"name": "here", "version": "0.0.1", "schema": "v1", "models": [model]})
    )


def _turn(place: Place, turn: int, words: str) -> list[str]:
    config = ["--config", str(place.home / ".continue/config.yaml")]
    return [place.binary(PACKAGE, "cn"), "-p", "--auto", *config, *(["--resume"] if turn else []), words]


def _environment(place: Place) -> Environment:
    return {"CONTINUE_GLOBAL_DIR": str(place.home / ".continue")} | {f"CONTINUE_{name}": "0" for name in _TELEMETRY}


AGENTS = (
    Agent(
        "cn",
        (PACKAGE,),
        _setup,
        _turn,
        _environment,
        scenarios=("compactions", "late"),
        base_url="config.yaml: models[].apiBase",
    ),
)
