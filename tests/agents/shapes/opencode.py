"""opencode on chat completions: title call, flattened summary call, and two texts of its own after a compaction."""

from agents.script import CORRECTION, GOAL, MORE, NOTES, TASK
from tests.agents.session import Session

SYSTEM = "You are opencode. Working directory: /srv/app\nProject rule: run the tests with 'make check'."
CONTINUE = "Continue if you have next steps, or stop and ask for clarification if you are unsure how to proceed."


def sessions() -> list[Session]:
    """Two compactions deep, with a sub-agent."""
    one = Session("opencode", "chat", "opencode/1.18.33 ai-sdk/provider-utils", {"x-session-id": "ses_11aa"})
    system = {"role": "system", "content": SYSTEM}
    title = {"role": "system", "content": "You are a title generator. You give back one line."}
    ask = one.text("Generate a title for this conversation:\n")
    one.said = (GOAL,)
    one.side([title, ask, one.text(f'"{GOAL}"')], "Streaming parser")
    one.items = [system]
    one.user(GOAL, one.text(f'"{GOAL}"'))
    one.step()
    _delegates(one, system)
    one.close()
    one.user(CORRECTION, one.text(f'"{CORRECTION}"'))
    one.step()
    for number in (1, 2):
        _compacts(one, system, number)
        one.step()
        one.close()
        one.items.append(one.text(f'"{MORE}"'))
        one.step()
    return [one]


def _delegates(one: Session, system: dict) -> None:
    task = {"x-session-id": "ses_22bb", "x-parent-session-id": "ses_11aa"}
    result = '<task id="ses_22bb" state="completed"><task_result>\nbig1.txt holds readings.\n</task_result></task>'
    one.delegate([system, one.text(TASK)], result, headers=task)


def _compacts(one: Session, system: dict, number: int) -> None:
    prior = f"<prior-summary>\n{NOTES}\n</prior-summary>\n" if number > 1 else f"[User]: {GOAL}\n[User]: {CORRECTION}\n"
    flat = (
        f"Here is the conversation so far:\n\n<conversation>\n{prior}[Tool result]: row 1\n[truncated]\n</conversation>"
    )
    order = "\n\nCreate a new anchored summary from the conversation history."
    summarizer = {"role": "system", "content": "You are a context summarization agent."}
    one.side([summarizer, one.text(flat + order)], f"{NOTES} ({number})")
    said = one.text("What did we do so far?")
    one.items = [system, said, one.text(f"{NOTES} ({number})", "assistant"), one.text(CONTINUE)]
