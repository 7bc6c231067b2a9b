"""smolagents: calls and results are plain text, and a later word of the user stands behind the newest observation."""

from agents.script import CORRECTION, GOAL
from tests.agents.session import OUTPUT, Session

SYSTEM = {"role": "system", "content": "You are an expert assistant who can solve any task using tool calls."}


def sessions() -> list[Session]:
    """Two tasks in one memory."""
    one = Session("smolagents", "chat", "OpenAI/Python 2.8.1", shell="bash")
    one.items = [SYSTEM]
    one.user(GOAL, one.parts(f"New task:\n{GOAL}"))
    one.close()
    one.items.append(one.parts(f"Observation:\n{OUTPUT}"))
    one.close()
    one.user(CORRECTION, one.parts(f"Observation:\nThis turn is finished.\nNew task:\n{CORRECTION}"))
    for _ in range(2):
        one.close()
        one.items.append(one.parts(f"Observation:\n{OUTPUT}"))
    one.close()
    return [one]
