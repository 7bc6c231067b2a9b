"""Agents and agent libraries from PyPI: libraries are driven by the small programs in agents/drivers."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from agents.runners.base import DRIVERS, KEY, MODEL, Agent, Environment, Package, Place, driven

_LITELLM = find_spec("litellm")
_VOCABULARIES = (
    Path(_LITELLM.origin).parent / "litellm_core_utils" / "tokenizers" if _LITELLM and _LITELLM.origin else ""
)
_QUIET = {  # nothing is fetched at the start
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "OPENHANDS_SUPPRESS_BANNER": "1",
    "TIKTOKEN_CACHE_DIR": str(_VOCABULARIES),
}


def _nothing(_: Place) -> None:
    """Needs no configuration."""


def _environment(place: Place) -> Environment:
    return {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{place.url}/v1", "PYTHONDONTWRITEBYTECODE": "1"} | _QUIET


def _library(name: str, driver: str, package: Package, *scenarios: str) -> Agent:
    def command(place: Place) -> list[str]:
        return [place.binary(package, "python"), str(DRIVERS / driver)]

    return Agent(
        name,
        (package,),
        _nothing,
        environment=_environment,
        scenarios=scenarios,
        talk=driven(command),
        base_url="OPENAI_BASE_URL, or base_url= of the model",
    )


MINI = Package("pypi", "mini-swe-agent")
GPTME = Package("pypi", "gptme")
AIDER = Package("pypi", "aider-chat")


def _gptme(place: Place, _: int, words: str) -> list[str]:
    ways = ["--non-interactive", "--model", f"local/{MODEL}", "--tool-format", "tool", "--tools", "shell,complete"]
    return [place.binary(GPTME, "gptme"), *ways, "--name", "one", words]


def _mini(place: Place, _: int, words: str) -> list[str]:
    model = ["-m", f"openai/{MODEL}", "-c", "mini.yaml", "-c", "model.cost_tracking=ignore_errors"]
    return [place.binary(MINI, "mini"), "-y", "--exit-immediately", *model, "-t", words]


def _mini_environment(place: Place) -> Environment:
    own = {
        "MSWEA_CONFIGURED": "true",
        "MSWEA_GLOBAL_CONFIG_DIR": str(place.home),
        "MSWEA_COST_TRACKING": "ignore_errors",
    }
    return _environment(place) | own | {"OPENAI_API_BASE": f"{place.url}/v1"}


def _aider(place: Place, turn: int, words: str) -> list[str]:
    quiet = ["--no-show-model-warnings", "--no-check-update", "--analytics-disable", "--no-pretty", "--map-tokens", "0"]
    history = ["--max-chat-history-tokens", "500", *(["--restore-chat-history"] if turn else [])]
    return [
        place.binary(AIDER, "aider"),
        "--model",
        f"openai/{MODEL}",
        "--yes-always",
        *quiet,
        *history,
        "--message",
        words,
    ]


def _aider_environment(place: Place) -> Environment:
    return _environment(place) | {"OPENAI_API_BASE": f"{place.url}/v1"}


AGENTS: tuple[Agent, ...] = (
    _library("openai-agents", "openai_agents.py", Package("pypi", "openai-agents"), "compactions"),
    _library("langchain", "langchain_agent.py", Package("pypi", "langchain", ("langchain-openai",)), "compactions"),
    _library(
        "deepagents",
        "deep_agent.py",
        Package("pypi", "deepagents", ("langchain-openai",)),
        "compactions",
        "sub-agent",
        "overflow",
        "refused",
    ),
    _library("openhands", "openhands_agent.py", Package("pypi", "openhands-sdk"), "compactions"),
    Agent("gptme", (GPTME,), _nothing, _gptme, _environment, scenarios=("overflow",), base_url="OPENAI_BASE_URL"),
    Agent("aider", (AIDER,), _nothing, _aider, _aider_environment, scenarios=("talk",), base_url="OPENAI_API_BASE"),
    Agent(
        "mini-swe-agent", (MINI,), _nothing, _mini, _mini_environment, scenarios=("errand",), base_url="OPENAI_API_BASE"
    ),
    _library("smolagents", "smol_agent.py", Package("pypi", "smolagents", ("openai",)), "overflow"),
    _library("pydantic-ai", "pydantic_agent.py", Package("pypi", "pydantic-ai-slim[openai]"), "sliding"),
)
