"""cline: it shortens by itself, without a model, and keeps the goal; a notice stands beside it."""

from agents.script import CORRECTION, GOAL
from tests.agents.session import Session

SYSTEM = {"role": "system", "content": "You are Cline, a coding agent. Directory: /srv/app"}
NOTICE = "<SYSTEM_NOTICE>\nEarlier context was compacted.\nCommands ran:\n- cat big{}.txt\n</SYSTEM_NOTICE>"


TOLD = (
    "<SYSTEM_NOTICE>\nEarlier context was compacted. Summary of your actions after the request above:\n"
    "Files read:\n\n\nFiles edited:\n\n\nCommands ran:\n{}\n\nYour recent responses:\n{}</SYSTEM_NOTICE>"
)


def sessions() -> list[Session]:
    """Two times shortened with its newest step kept; shortened to the goal alone, with a note of what was done."""
    return [_with_a_tail(), _to_the_goal()]


def _new() -> Session:
    return Session("cline", "chat", "ai-sdk/openai-compatible/3.0.37 runtime/node.js/24", shell="run_commands")


def _to_the_goal() -> Session:
    one = _new()
    one.items = [SYSTEM]
    one.user(GOAL)
    for _ in range(2):
        one.step()
    one.user(CORRECTION)
    for last in (5, 8):
        while one.number < last:
            one.step()
        commands = "\n".join(f"cat big{number}.txt" for number in range(1, last + 1))
        said = "\n---\n".join(f"Step {number}: I run cat big{number}.txt." for number in range(last - 2, last + 1))
        one.items = [SYSTEM, one.parts(GOAL, TOLD.format(commands, said))]
    one.step()
    one.close()
    return one


def _with_a_tail() -> Session:
    one = _new()
    one.items = [SYSTEM]
    one.user(GOAL)
    for _ in range(3):
        one.step('[{"query":"cat big1.txt","result":"row 1","success":true}]')
    for number in (1, 2):
        one.items = [SYSTEM, one.parts(GOAL, NOTICE.format(number)), *one.items[-2:]]
        for _ in range(2):
            one.step('[{"query":"cat big1.txt","result":"row 1","success":true}]')
    one.close()
    return one
