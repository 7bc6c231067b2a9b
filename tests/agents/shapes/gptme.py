"""gptme: puts the files that its user names behind the words, and says itself that a call is missing."""

from agents.script import CORRECTION, GOAL
from tests.agents.session import Session

SYSTEM = {"role": "system", "content": [{"type": "text", "text": "You are gptme v0.35.1, an assistant."}]}
FILES = (
    '\n\n````app.py\ndef parse(line):\n    return line.split(",")\n\n````\n\n````legacy.py\n# never delete this\n\n````'
)
WARNING = {
    "role": "system",
    "content": [{"type": "text", "text": "<system_warning>Token usage: 12434</system_warning>"}],
}


def sessions() -> list[Session]:
    """Two turns; in the second a warning that is gone again in the next request."""
    one = Session("gptme", "chat", "OpenAI/Python 2.8.1", shell="shell")
    one.items = [SYSTEM]
    one.user(GOAL, one.parts(GOAL + FILES))
    one.step()
    one.close()
    one.items.append(one.parts("<system>No tool call detected in last message. Use the complete tool.</system>"))
    one.close()
    one.user(CORRECTION, one.parts(CORRECTION))
    one.step()
    one.items.append(WARNING)
    one.step()
    one.items.remove(WARNING)
    one.close()
    return [one]
