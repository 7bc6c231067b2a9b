"""qwen-code: reminders before each text of the user, a snapshot as its summary, a fork that extracts memories."""

from agents.script import CORRECTION, GOAL, MORE, NOTES, TASK
from tests.agents.session import Session

REMINDER = "<system-reminder>\nToday is Monday.\n</system-reminder>"
SYSTEM = {"role": "system", "content": "You are Qwen Code, an interactive agent. Directory: /srv/app"}
SNAPSHOT = "<state_snapshot>\n<overall_goal>{}</overall_goal>\n</state_snapshot>"


def sessions() -> list[Session]:
    """Two compactions deep, with a sub-agent in the background and a memory fork."""
    one = Session("qwen-code", "chat", "QwenCode/0.24.4 (linux; x64)", shell="run_shell_command")
    one.items = [SYSTEM]
    one.user(GOAL, one.parts(REMINDER, REMINDER, GOAL))
    one.step()
    worker = {"role": "system", "content": "You are a general-purpose subagent."}
    one.delegate([worker, one.parts(REMINDER, TASK)], "The sub-agent works in the background.")
    one.close()
    one.items.append(one.text("<task-notification>\n<result>big1.txt holds readings.</result>\n</task-notification>"))
    one.close()
    memory = {"role": "system", "content": "You look after the notes of an agent."}
    one.side(
        [memory, *one.items[1:], one.text("Managed memory has TWO directories. Write down what is worth keeping.")],
        tools=True,
    )
    one.user(CORRECTION, one.parts(REMINDER, CORRECTION))
    one.step()
    for number in (1, 2):
        _compacts(one, number)
        one.step()
        one.close()
        one.items.append(one.parts(REMINDER, MORE))
        one.step()
    return [one]


def _compacts(one: Session, number: int) -> None:
    order = {"role": "system", "content": "You are the component that summarizes a conversation."}
    ask = one.text("First, reason in your <analysis> block. Then, produce the <state_snapshot> XML.")
    summary = SNAPSHOT.format(f"{NOTES} ({number})")
    one.side([order, *one.items[1:-2], ask], summary, max_tokens=20000)
    pending = {**one.items[-2], "content": "Got it. Thanks for the additional context!"}
    begins = one.text(f"{summary}\n\nResume the prior task using the summary above.")
    one.items = [SYSTEM, begins, pending, one.items[-1]]
