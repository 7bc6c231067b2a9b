"""Claude Code: many reminders before the goal, tools kept in the summary call, interruptions inside a tool's result."""

from agents.script import CORRECTION, GOAL, MORE, NOTES, TASK
from tests.agents.session import Item, Session

LEFT = "\n<system-reminder>\n<total_tokens>14977792 tokens left</total_tokens>\n</system-reminder>"
REMINDERS = (
    "<system-reminder>\n# Environment\nDirectory: /srv/app\n</system-reminder>",
    "<system-reminder>\nrun make check\n</system-reminder>\n",
)
ORDER = (
    "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.\n\n"
    "Your task is to create a detailed summary of the conversation so far."
)
CONTINUED = "This session is being continued from a previous conversation that ran out of context.\nSummary:\n{}"
INTERRUPTED = (
    "row 1\n<system-reminder>\nThe user sent a new message while you were working:\n{}\n\n"
    "This is how Claude Code surfaces messages.\n</system-reminder>"
)


def sessions() -> list[Session]:
    """A correction as a turn of its own, and one that interrupts a tool."""
    return [_session(interrupts=False), _session(interrupts=True)]


def _session(*, interrupts: bool) -> Session:
    headers = {"x-claude-code-session-id": "5c1e-cc", "anthropic-version": "2023-06-01"}
    one = Session("claude-code", "messages", "claude-cli/2.1.332 (external, sdk-cli)", headers, shell="Bash")
    one.fields = {"system": _system()}
    one.user(GOAL, one.parts(*REMINDERS, GOAL))
    one.step("row 1" + LEFT)
    task = {"x-claude-code-agent-id": "a7"}
    one.delegate(
        [one.parts(*REMINDERS, TASK)], "big1.txt holds readings." + LEFT, headers=task, system=_system(sub=True)
    )
    if interrupts:
        one.step(INTERRUPTED.format(CORRECTION) + LEFT)
        one.hears(CORRECTION)
    else:
        one.close()
        one.user(CORRECTION, one.parts(f"{LEFT.strip()}\n", CORRECTION))
    one.step("row 2" + LEFT)
    one.step("row 3" + LEFT)
    for number in (1, 2):
        _compacts(one, number)
        one.step("row 4" + LEFT)
        one.close()
        one.items.append(one.parts(f"{LEFT.strip()}\n", MORE))
        one.step("row 5" + LEFT)
    return one


def _system(*, sub: bool = False) -> list[Item]:
    own = " cc_is_subagent=true;" if sub else ""
    mark = f"x-anthropic-billing-header: cc_version=2.1.332; cc_entrypoint=sdk-cli;{own}"
    return [{"type": "text", "text": mark}, {"type": "text", "text": "You are a Claude agent."}]


def _compacts(one: Session, number: int) -> None:
    """The newest exchange isn't in the summary call and stays; the order stands behind the result before it."""
    kept, before = one.items[-2:], one.items[:-2]
    ordered = {**before[-1], "content": [*before[-1]["content"], {"type": "text", "text": ORDER}]}
    summary = f"<analysis>\nDone.\n</analysis>\n\n<summary>\n{NOTES} ({number})\n</summary>"
    one.side([*before[:-1], ordered], summary, tools=True)
    one.items = [one.parts(*REMINDERS, CONTINUED.format(f"{NOTES} ({number})")), *kept]
