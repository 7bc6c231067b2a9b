"""A smolagents agent that calls tools, on chat completions; it keeps its whole memory and ends a turn by a tool."""

from __future__ import annotations

import asyncio
import os

from smolagents import OpenAIServerModel, ToolCallingAgent, tool
from talk import converse, shell


@tool
def bash(command: str) -> str:
    """Runs a shell command.

    Args:
        command: The command.
    """
    return shell(command)


model = OpenAIServerModel(
    "scripted-model", api_base=os.environ["OPENAI_BASE_URL"], api_key=os.environ["OPENAI_API_KEY"]
)
agent = ToolCallingAgent(tools=[bash], model=model, max_steps=12)
begun = False


async def turn(words: str) -> str:
    """Gives the agent's closing words."""
    global begun
    reset, begun = not begun, True
    return str(await asyncio.to_thread(agent.run, words, reset=reset))


converse(turn)
