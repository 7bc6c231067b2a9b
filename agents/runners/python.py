"""Agents and agent libraries from PyPI: libraries are driven by the small programs in agents/drivers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agents.runners.base import KEY, Agent, Environment, Package, Place, Talk

_DRIVERS = Path(__file__).resolve().parent.parent / "drivers"


def _nothing(_: Place) -> None:
    """Needs no configuration."""


def _environment(place: Place) -> Environment:
    return {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{place.url}/v1", "PYTHONDONTWRITEBYTECODE": "1"}


def _say(words: str, _interrupts: bool) -> dict[str, Any]:  # noqa: FBT001 (one of two ways to talk, see Talk)
    return {"say": words}


def _library(name: str, driver: str, package: Package, *scenarios: str) -> Agent:
    def command(place: Place) -> list[str]:
        return [place.binary(package, "python"), str(_DRIVERS / driver)]

    return Agent(
        name,
        (package,),
        _nothing,
        environment=_environment,
        scenarios=scenarios,
        talk=Talk(command, _say, lambda line: line.get("type") == "turn_end"),
        base_url="OPENAI_BASE_URL, or base_url= of the model",
    )


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
    _library("pydantic-ai", "pydantic_agent.py", Package("pypi", "pydantic-ai-slim[openai]"), "sliding"),
)
