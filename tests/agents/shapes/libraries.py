"""Libraries from PyPI: none sends a session id, and what they cut away is gone without a mark."""

from agents.script import CORRECTION, GOAL, MORE, NOTES
from tests.agents.session import Item, Session

SYSTEM: Item = {"role": "system", "content": "You are a coding agent."}
ROLE = (
    "<role>\nContext Extraction Assistant\n</role>\n\n"
    '<messages>\nMessages to summarize:\n<message type="human">{}</message>\n</messages>'
)


def sessions() -> list[Session]:
    """LangChain, deep agents, pydantic-ai with a sliding window, openai-agents."""
    deep = "You are in the middle of a conversation that has been summarized.\n\n<summary>\n{}\n</summary>"
    plain = "Here is a summary of the conversation to date:\n\n{}"
    return [_summarised(plain), _summarised(deep), _unsummarised(plain), _sliding(), _sealed()]


def _works(one: Session) -> None:
    one.user(GOAL)
    one.step()
    one.step()
    one.close()
    one.user(CORRECTION)
    one.step()


def _summarised(form: str) -> Session:
    one = Session("generic", "chat", "AsyncOpenAI/Python 3.57.0")
    one.items = [SYSTEM]
    _works(one)
    for number in (1, 2):
        one.side([one.text(ROLE.format("only the newest part of the history"))], f"{NOTES} ({number})")
        one.items = [SYSTEM, one.text(form.format(f"{NOTES} ({number})")), *one.items[-2:]]
        one.step()
        one.close()
        one.items.append(one.text(MORE))
        one.step()
    return one


def _unsummarised(form: str) -> Session:
    """What is too long to be summarised: the same words stand for what was lost each time, and no model was asked."""
    one = Session("generic", "chat", "AsyncOpenAI/Python 3.57.0")
    one.items = [SYSTEM]
    one.user(GOAL)
    one.step()
    one.step()
    stock = one.text(form.format("Previous conversation was too long to summarize."))
    one.items = [SYSTEM, stock, *one.items[-2:]]
    one.close()
    one.user(CORRECTION)
    one.step()
    for words in (one.text(form.format(NOTES)), stock):
        one.items = [SYSTEM, words, *one.items[-2:]]
        one.step()
        one.close()
        one.items.append(one.text(MORE))
        one.step()
    return one


def _sliding() -> Session:
    one = Session("generic", "chat", "pydantic-ai/2.68.0")
    one.items = [SYSTEM]
    _works(one)
    for _ in range(3):
        one.items = [SYSTEM, *one.items[-4:]]
        one.step()
    one.close()
    return one


def _sealed() -> Session:
    """The server compacts, and gives back nothing of what the user said."""
    one = Session("generic", "responses", "Agents/Python 0.24.0", fields={"instructions": "You are a coding agent."})
    one.items = []
    _works(one)
    one.close()
    for number in (1, 2):
        sealed: Item = {"type": "compaction", "id": f"cmp_{number}", "encrypted_content": f"c2VhbGVk{number}" * 8}
        other = {"user-agent": "AsyncOpenAI/Python 3.57.0"}
        one.passed(one.items, [sealed], tools=False, path="/v1/responses/compact", instructions=None, headers=other)
        one.items = [sealed]
        one.items.append(one.text(MORE))
        one.step()
        one.close()
    return one
