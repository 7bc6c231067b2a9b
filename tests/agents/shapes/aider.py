"""aider: canned turns, files as texts of the user, rules behind the newest words only, headings in the summary call."""

from agents.script import CORRECTION, GOAL, MORE, NOTES
from tests.agents.session import Item, Session

SYSTEM: Item = {"role": "system", "content": "Act as an expert software developer."}
RULES = "\n\nTo suggest changes to a file you MUST return the entire content of the updated file."
FILES = "I have *added these files to the chat* so you can go ahead and edit them.\n\napp.py\n```\n# {}\n```\n"
NONE = "I am not sharing any files that you can edit yet."


def sessions() -> list[Session]:
    """Two compactions deep, each between two turns: of what was summarised before, and of everything anew."""
    return [_session(anew=False), _session(anew=True)]


def _session(*, anew: bool) -> Session:
    one = Session("aider", "chat", "OpenAI/Python 2.8.0")
    history: list[Item] = []
    log: list[Item] = []  # a new process reads it, and has all of it summarised
    for number, words in enumerate((GOAL, CORRECTION, MORE)):
        shared = one.text(FILES.format(number) if number != 1 else NONE)
        told = one.text(words)
        one.items = [SYSTEM, *_canned(one), *history, shared, one.text("Ok.", "assistant")]
        one.user(words, one.text(words + RULES))
        answer = one.close(tools=False)
        log += [told, answer]
        flat = "".join(
            f"# {item['role'].upper()}\n{item['content']}\n" for item in (log if anew else (*history, told, answer))
        )
        order: Item = {"role": "system", "content": "*Briefly* summarize this partial conversation about programming."}
        summary = f"I asked you to go on. {NOTES} ({number})"
        one.side([order, one.text(flat)], summary)
        begun = one.text(f"I spoke to you previously about a number of things.\n{summary}")
        history = [begun, one.text("Ok.", "assistant")]
    return one


def _canned(one: Session) -> list[Item]:
    greeting = one.text("Ok, I will switch the greeting text from Hello to Hey, in show_greeting.py.", "assistant")
    moved = "I switched to a new code base. Please don't consider the above files or try to edit them any longer."
    return [one.text("Change the greeting to be more casual"), greeting, one.text(moved), one.text("Ok.", "assistant")]
