"""A deep agent (LangChain) with the summarization that it brings along, on chat completions."""

from __future__ import annotations

from deepagents import create_deep_agent
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from talk import converse, shell

_WINDOW = 24_000  # its own count decides


@tool
def bash(command: str) -> str:
    """Runs a shell command."""
    return shell(command)


model = ChatOpenAI(model="scripted-model", streaming=True, profile={"max_input_tokens": _WINDOW})
agent = create_deep_agent(model, [bash], system_prompt="You are a coding agent.", checkpointer=InMemorySaver())


async def turn(words: str) -> str:
    """Gives the agent's closing words."""
    asked = {"messages": [{"role": "user", "content": words}]}
    done = await agent.ainvoke(asked, {"configurable": {"thread_id": "one"}})
    return str(done["messages"][-1].content)


converse(turn)
