"""cline (command line): chat completions."""

from __future__ import annotations

import subprocess

from agents.runners.base import KEY, MODEL, WINDOW, Agent, Environment, Package, Place

PACKAGE = Package("npm", "cline")
_SWITCHES = ("CLINE_TELEMETRY_DISABLED", "CLINE_NO_AUTO_UPDATE", "CLINE_DISABLE_TELEMETRY")


def _setup(place: Place) -> None:
    login = ["auth", "-p", "openai-compatible", "-k", KEY, "-m", MODEL, "-b", f"{place.url}/v1"]
    environment = {"HOME": str(place.home), "PATH": "/usr/local/bin:/usr/bin:/bin", **_environment(place)}
    command = [place.binary(PACKAGE, "cline"), *login]
    subprocess.run(command, env=environment, timeout=90, check=True, capture_output=True, cwd=place.project)
    model = {"id": MODEL, "name": "Scripted", "contextWindow": WINDOW, "maxInputTokens": WINDOW, "maxTokens": 8000}
    models = {"version": 1, "providers": {"openai-compatible": {"models": {MODEL: model}}}}
    place.write(".cline/data/settings/models.json", models)


def _turn(place: Place, turn: int, words: str) -> list[str]:
    sessions = sorted((place.home / ".cline/data/sessions").glob("*"), key=lambda path: path.stat().st_mtime)
    resumed = ["--id", sessions[-1].name] if turn and sessions else []
    return [place.binary(PACKAGE, "cline"), "--json", "--auto-approve", "true", "-m", MODEL, *resumed, words]


def _environment(_: Place) -> Environment:
    return dict.fromkeys(_SWITCHES, "1")


AGENTS = (
    Agent(
        "cline",
        (PACKAGE,),
        _setup,
        _turn,
        _environment,
        scenarios=("one-turn", "errand"),
        base_url="cline auth -p openai-compatible -b URL",
    ),
)
