"""A LangChain agent with its summarization middleware, on chat completions."""

from __future__ import annotations

from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from talk import converse, shell

_MOST_MESSAGES, _KEPT_MESSAGES = 8, 4


@tool
def bash(command: str) -> str:
    """Runs a shell command."""
    return shell(command)


model = ChatOpenAI(model="scripted-model", streaming=True)
agent = create_agent(
    model,
    [bash],
    system_prompt="You are a coding agent.",
    middleware=[
        SummarizationMiddleware(model, trigger=("messages", _MOST_MESSAGES), keep=("messages", _KEPT_MESSAGES))
    ],
    checkpointer=InMemorySaver(),
)


async def turn(words: str) -> str:
    """Gives the agent's closing words."""
    asked = {"messages": [{"role": "user", "content": words}]}
    done = await agent.ainvoke(asked, {"configurable": {"thread_id": "one"}})
    return str(done["messages"][-1].content)


converse(turn)
