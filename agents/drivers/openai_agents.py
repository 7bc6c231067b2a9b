"""openai-agents on Responses, with its session that has the server compact."""

from __future__ import annotations

from pathlib import Path

from talk import converse, shell

from agents import Agent, ModelSettings, Runner, SQLiteSession, function_tool, set_tracing_disabled
from agents.memory import OpenAIResponsesCompactionSession

_MODEL = "gpt-5.1"
_ENOUGH = 4  # items besides the user's, so that a short session is compacted more than once


@function_tool
def bash(command: str) -> str:
    """Runs a shell command."""
    return shell(command)


set_tracing_disabled(disabled=True)
agent = Agent(
    name="porter",
    instructions="You are a coding agent.",
    tools=[bash],
    model=_MODEL,
    model_settings=ModelSettings(store=False),
)
session = OpenAIResponsesCompactionSession(
    "one",
    SQLiteSession("one", Path.home() / "session.db"),
    model=_MODEL,
    compaction_mode="input",
    should_trigger_compaction=lambda context: len(context["compaction_candidate_items"]) >= _ENOUGH,
)


async def turn(words: str) -> str:
    """Gives the agent's closing words."""
    return str((await Runner.run(agent, words, session=session)).final_output)


converse(turn)
