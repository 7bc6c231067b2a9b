"""An OpenHands agent with its summarizing condenser, on chat completions."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

from openhands.sdk import LLM, Agent, Conversation, Tool
from openhands.sdk.context.condenser import LLMSummarizingCondenser
from openhands.sdk.tool import Action, Observation, ToolDefinition, ToolExecutor, register_tool
from talk import converse, shell

_MOST_EVENTS = 12


class BashAction(Action):
    """A call."""

    command: str


class BashObservation(Observation):
    """What the command printed."""


class BashExecutor(ToolExecutor):
    """Runs it."""

    def __call__(self, action: BashAction, conversation: object = None) -> BashObservation:  # noqa: ARG002 (its protocol)
        """Gives what the command printed."""
        return BashObservation.from_text(shell(action.command))


class BashTool(ToolDefinition[BashAction, BashObservation]):
    """A shell."""

    name = "bash"

    @classmethod
    def create(cls, conv_state: object = None) -> Sequence[BashTool]:  # noqa: ARG003 (its protocol)
        """Gives the tool."""
        words = "Runs a shell command."
        return [
            cls(description=words, action_type=BashAction, observation_type=BashObservation, executor=BashExecutor())
        ]


register_tool("bash", BashTool)
model = LLM(model="openai/scripted-model", base_url=os.environ["OPENAI_BASE_URL"], api_key="sk-test", usage_id="agent")
condenser = LLMSummarizingCondenser(
    llm=model.model_copy(update={"usage_id": "condenser"}), max_size=_MOST_EVENTS, keep_first=2
)
agent = Agent(llm=model, tools=[Tool(name="bash")], condenser=condenser)
conversation = Conversation(agent=agent, workspace=str(Path.cwd()))


async def turn(words: str) -> str:
    """Runs until the agent has nothing more to do."""
    conversation.send_message(words)
    await asyncio.to_thread(conversation.run)
    return ""


converse(turn)
