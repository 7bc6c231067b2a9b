"""An OpenHands agent with its summarizing condenser, on chat completions."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from openhands.sdk import LLM, Agent, Conversation, Tool
from openhands.sdk.context.condenser import LLMSummarizingCondenser
from openhands.tools.terminal import TerminalTool
from talk import converse

_MOST_EVENTS = 12

model = LLM(model="openai/scripted-model", base_url=os.environ["OPENAI_BASE_URL"], api_key="sk-test", usage_id="agent")
condenser = LLMSummarizingCondenser(
    llm=model.model_copy(update={"usage_id": "condenser"}), max_size=_MOST_EVENTS, keep_first=2
)
agent = Agent(llm=model, tools=[Tool(name=TerminalTool.name)], condenser=condenser)
conversation = Conversation(agent=agent, workspace=Path.cwd())


async def turn(words: str) -> str:
    """Runs until the agent has nothing more to do."""
    conversation.send_message(words)
    await asyncio.to_thread(conversation.run)
    return ""


converse(turn)
