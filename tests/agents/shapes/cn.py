"""Continue's command line: after a compaction nothing but system text and the summary, in the assistant's name."""

from agents.script import CORRECTION, GOAL, MORE, NOTES
from tests.agents.session import Session

SYSTEM = {
    "role": "system",
    "content": 'You are an agent in the Continue CLI.\n<context name="userRules">make check</context>',
}


def sessions() -> list[Session]:
    """Two compactions deep; each begins with a word that the client says by itself."""
    one = Session("cn", "chat", "ls/JS 5.23.2", shell="Bash")
    one.items = [SYSTEM]
    one.user(GOAL)
    one.step()
    one.close()
    one.user(CORRECTION)
    one.step()
    for number in (1, 2):
        one.side(
            [
                *one.items,
                one.text("Please provide a concise summary of our conversation so far, capturing the key context."),
            ],
            f"{NOTES} ({number})",
        )
        one.items = [SYSTEM, one.text(f"{NOTES} ({number})", "assistant")]
        one.step()
        one.close()
        one.items.append(one.text("continue"))
        one.close()
        one.items.append(one.text(MORE))
        one.step()
    return [one]
