"""mini-swe-agent: the task inside a long template, in one message of the user; it never compacts."""

from agents.script import GOAL
from tests.agents.session import Session

SYSTEM = {"role": "system", "content": "You are a helpful assistant that can interact with a computer."}
TEMPLATE = (
    "Please solve this issue: {}\n\nYou can execute bash commands and edit files.\n\n## Rules\n\nOne command a time."
)


def sessions() -> list[Session]:
    """One order, and work on it."""
    one = Session("mini-swe-agent", "chat", "OpenAI/Python 2.8.0")
    one.items = [SYSTEM]
    one.user(GOAL, one.text(TEMPLATE.format(GOAL)))
    for _ in range(3):
        one.step("<returncode>0</returncode>\n<output>\nrow 1\n</output>")
    one.close()
    return [one]
