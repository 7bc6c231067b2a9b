"""pi: no session id in chat and messages, flattened summary calls, the newest messages stay behind the summary."""

from agents.script import CORRECTION, GOAL, MORE, NOTES
from tests.agents.session import Item, Session

SYSTEM = "You are an expert coding assistant operating inside pi, a coding agent harness. Directory: /srv/app"
SUMMARY = (
    "The conversation history before this point was compacted into the following summary:\n\n<summary>\n{}\n</summary>"
)
AGENTS = {"chat": "OpenAI/JS 6.26.0", "responses": "OpenAI/JS 6.26.0", "messages": "Anthropic/JS 0.91.1"}


def sessions() -> list[Session]:
    """The same session over each of its three APIs."""
    return [_session(api) for api in AGENTS]


def _session(api: str) -> Session:
    named = {"session_id": "01a2-pi"} if api == "responses" else {}
    one = Session("pi", api, AGENTS[api], named)
    if api == "messages":
        one.fields = {"system": [{"type": "text", "text": SYSTEM}]}
    system = [] if api == "messages" else [{"role": "developer" if api == "responses" else "system", "content": SYSTEM}]
    one.items = list(system)
    one.user(GOAL, one.parts(GOAL))
    for _ in range(2):
        one.step()
    one.close()
    one.user(CORRECTION, one.parts(CORRECTION))
    one.step()
    one.close()
    for number in (1, 2):
        _compacts(one, system, number)
        one.items.append(one.parts(MORE))
        one.step()
        one.close()
    return one


def _compacts(one: Session, system: list[Item], number: int) -> None:
    order = "You are a context summarization assistant. You give back a summary and nothing else."
    flat = f"<conversation>\n[User]: {GOAL}\n\n[Tool result]: row 1\n</conversation>\n\nWrite a checkpoint."
    if one.api == "messages":
        one.side([one.parts(flat)], f"{NOTES} ({number})", system=[{"type": "text", "text": order}])
    else:
        one.side([{**system[0], "content": order}, one.parts(flat)], f"{NOTES} ({number})")
    tail = one.items[-(4 if one.api == "responses" else 3) :]  # the newest call, its result, the closing words
    one.items = [*system, one.parts(SUMMARY.format(f"{NOTES} ({number})")), *tail]
