"""cline: it shortens by itself, without a model, and keeps the goal; a notice stands beside it."""

from agents.script import GOAL
from tests.agents.session import Session

SYSTEM = {"role": "system", "content": "You are Cline, a coding agent. Directory: /srv/app"}
NOTICE = "<SYSTEM_NOTICE>\nEarlier context was compacted.\nCommands ran:\n- cat big{}.txt\n</SYSTEM_NOTICE>"


def sessions() -> list[Session]:
    """Two times shortened."""
    one = Session("cline", "chat", "ai-sdk/openai-compatible/3.0.37 runtime/node.js/24", shell="run_commands")
    one.items = [SYSTEM]
    one.user(GOAL)
    for _ in range(3):
        one.step('[{"query":"cat big1.txt","result":"row 1","success":true}]')
    for number in (1, 2):
        one.items = [SYSTEM, one.parts(GOAL, NOTICE.format(number)), *one.items[-2:]]
        for _ in range(2):
            one.step('[{"query":"cat big1.txt","result":"row 1","success":true}]')
    one.close()
    return [one]
