"""A pydantic-ai agent that keeps a sliding window of its messages, on chat completions."""

from __future__ import annotations

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models.openai import OpenAIChatModel
from talk import converse, shell

_KEPT = 5


def newest(messages: list[ModelMessage]) -> list[ModelMessage]:
    """Drops the oldest messages; the first that stays is an answer, so that no result loses its call."""
    start = max(len(messages) - _KEPT, 0)
    while 0 < start < len(messages) and not isinstance(messages[start], ModelResponse):
        start += 1
    return messages[start:]


def _agent() -> Agent:
    model = OpenAIChatModel("scripted-model")
    try:  # newer releases take processors as a capability
        from pydantic_ai.capabilities import ProcessHistory  # noqa: PLC0415
    except ImportError:
        return Agent(model, instructions="You are a coding agent.", history_processors=[newest])
    return Agent(model, instructions="You are a coding agent.", capabilities=[ProcessHistory(newest)])


agent = _agent()
history: list[ModelMessage] = []


@agent.tool_plain
def bash(command: str) -> str:
    """Runs a shell command."""
    return shell(command)


async def turn(words: str) -> str:
    """Gives the agent's closing words."""
    done = await agent.run(words, message_history=list(history))
    history[:] = done.all_messages()
    return str(done.output)


converse(turn)
