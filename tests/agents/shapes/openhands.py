"""OpenHands: an id of the conversation in the body, events flattened for the condenser, its summary beside the goal."""

from agents.script import CORRECTION, GOAL, MORE, NOTES
from tests.agents.session import Session

SYSTEM = {"role": "system", "content": [{"type": "text", "text": "<SOUL>\nYou are OpenHands agent.\n</SOUL>"}]}
ORDER = {"role": "system", "content": [{"type": "text", "text": "You are maintaining a context-aware state summary."}]}


def sessions() -> list[Session]:
    """Two compactions deep: only the first message of the user stays."""
    one = Session("openhands", "chat", "OpenAI/Python 2.8.0", fields={"prompt_cache_key": "dd65209b-6377"})
    one.items = [SYSTEM]
    one.user(GOAL, one.parts(GOAL))
    one.step()
    one.close()
    one.user(CORRECTION, one.parts(CORRECTION))
    one.step()
    for number in (1, 2):
        before = f"<PREVIOUS SUMMARY>\n{NOTES} (1)\n</PREVIOUS SUMMARY>\n" if number > 1 else ""
        events = f"{before}<EVENT>\nMessageEvent (user)\n  {CORRECTION[:30]}...\n</EVENT>\n"
        one.side(
            [ORDER, one.parts(f"{events}\n\nNow summarize the events using the rules above.")], f"{NOTES} ({number})"
        )
        one.items = [SYSTEM, one.parts(GOAL, f"{NOTES} ({number})"), *one.items[-2:]]
        one.step()
        one.close()
        one.items.append(one.parts(MORE))
        one.step()
    return [one]
