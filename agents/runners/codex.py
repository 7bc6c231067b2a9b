"""codex: Responses, with a provider of one's own (summaries as text) and with the built-in one (sealed compaction)."""

from __future__ import annotations

import subprocess
import sys

from agents.runners.base import DRIVERS, KEY, MODEL, WINDOW, Agent, Environment, Package, Place, driven

PACKAGE = Package("npm", "@openai/codex")
_COMMON = f"""model_context_window = {WINDOW}
check_for_update_on_startup = false
approval_policy = "never"
sandbox_mode = "danger-full-access"
[analytics]
enabled = false
[otel]
exporter = "none"
"""


def _own_provider(place: Place) -> None:
    provider = f"""[model_providers.here]
name = "Scripted"
base_url = "{place.url}/v1"
env_key = "SCRIPTED_KEY"
wire_api = "responses"
request_max_retries = 1
stream_max_retries = 1
"""
    place.write(".codex/config.toml", f'model = "{MODEL}"\nmodel_provider = "here"\n{_COMMON}{provider}')


def _built_in(place: Place) -> None:
    place.write(".codex/config.toml", f'model = "gpt-5.1-codex"\nopenai_base_url = "{place.url}/v1"\n{_COMMON}')
    subprocess.run(
        [place.binary(PACKAGE, "codex"), "login", "--with-api-key"],
        input=KEY,
        text=True,
        env={"HOME": str(place.home), "CODEX_HOME": str(place.home / ".codex"), "PATH": "/usr/bin:/bin:/usr/local/bin"},
        timeout=60,
        check=True,
        capture_output=True,
    )


def _turn(place: Place, turn: int, words: str) -> list[str]:
    resumed = ["resume", "--last"] if turn else []
    return [place.binary(PACKAGE, "codex"), "exec", "--skip-git-repo-check", *resumed, words]


def _server(place: Place) -> list[str]:
    return [sys.executable, str(DRIVERS / "codex_server.py"), place.binary(PACKAGE, "codex")]


def _environment(place: Place) -> Environment:
    return {"CODEX_HOME": str(place.home / ".codex"), "SCRIPTED_KEY": KEY}


AGENTS = (
    Agent(
        "codex",
        (PACKAGE,),
        _own_provider,
        _turn,
        _environment,
        scenarios=("compactions", "steer", "sub-agent-beside", "overflow", "late"),
        talk=driven(_server),
        base_url="config.toml: model_providers.NAME.base_url, wire_api = responses",
    ),
    Agent(
        "codex-builtin",
        (PACKAGE,),
        _built_in,
        _turn,
        _environment,
        scenarios=("compactions",),
        base_url="config.toml: openai_base_url",
    ),
)
