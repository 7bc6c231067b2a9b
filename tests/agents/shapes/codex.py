"""codex: no instructions field, texts of its own in the role user, human words kept as far as its budget goes."""

from agents.script import CORRECTION, GOAL, MORE, NOTES, TASK
from tests.agents.session import Item, Session

ORDER = "You are performing a CONTEXT CHECKPOINT COMPACTION. Create a handoff summary for another LLM."
SUMMARY = "Another language model started to solve this problem and produced a summary of its thinking process:\n{}"


def sessions() -> list[Session]:
    """A provider of one's own, words cut by the budget, the built-in provider, inside another program, a sub-agent."""
    return [_own(keeps=True), _own(keeps=False), _built_in(), _inside_another(), _delegating()]


def _session() -> tuple[Session, list[Item], Item]:
    headers = {"session-id": "01a2-cx", "thread-id": "01a2-cx"}
    one = Session(
        "codex", "responses", "codex_exec/0.171.0 (linux)", headers, {"prompt_cache_key": "01a2-cx"}, "exec_command"
    )
    head = {**one.text("You are a coding agent running in the Codex CLI.", "developer"), "id": "msg_base"}
    rules = {
        **one.text("<permissions instructions>\nAll is allowed.\n</permissions instructions>", "developer"),
        "id": "msg_perm",
    }
    place = one.parts(
        "# AGENTS.md instructions for /srv/app\n\n<INSTRUCTIONS>\nrun make check\n</INSTRUCTIONS>",
        "<environment_context>\n  <cwd>/srv/app</cwd>\n</environment_context>",
    )
    return one, [head, rules], {**place, "id": "msg_env"}


def _works(one: Session) -> None:
    one.user(GOAL, {**one.text(GOAL), "id": "msg_goal"})
    one.step()
    one.close()
    one.user(CORRECTION, {**one.text(CORRECTION), "id": "msg_corr"})
    one.step()


def _own(*, keeps: bool) -> Session:
    one, (head, rules), place = _session()
    one.items = [head, rules, place]
    _works(one)
    for number in (1, 2):
        one.side([*one.items, one.text(ORDER)], f"{NOTES} ({number})", parallel_tool_calls=False)
        goal = [{**one.text(GOAL), "id": "msg_goal"}] if keeps else []
        correction = [{**one.text(CORRECTION), "id": "msg_corr"}] if keeps else []
        summary = {**one.text(SUMMARY.format(f"{NOTES} ({number})")), "id": f"msg_sum{number}"}
        one.items = [head, *goal, rules, place, *correction, summary]
        one.step()
        one.close()
        one.items.append({**one.text(MORE), "id": f"msg_more{number}"})
        one.step()
    return one


def _inside_another() -> Session:
    """The program that codex runs inside of gives its own name; a word interrupts a command."""
    one, (head, rules), place = _session()
    one.name, one.agent = "generic", "editor/0.171.0 (linux)"
    one.items = [head, rules, place]
    one.user(GOAL)
    one.step()
    one.user(CORRECTION)
    one.step()
    one.side([*one.items, one.text(ORDER)], NOTES, parallel_tool_calls=False)
    one.items = [head, rules, place, one.text(SUMMARY.format(NOTES))]
    one.step()
    one.close()
    return one


def _built_in() -> Session:
    one, (head, rules), place = _session()
    one.items = [head, rules, place]
    _works(one)
    for number in (1, 2):
        sealed = {"type": "compaction", "id": f"cmp_{number}", "encrypted_content": f"c2VhbGVk{number}" * 8}
        one.passed([*one.items, {"type": "compaction_trigger"}], [sealed])
        goal, correction = ({**one.text(GOAL), "id": "msg_goal"}, {**one.text(CORRECTION), "id": "msg_corr"})
        one.items = [head, goal, rules, place, correction, sealed]
        one.step()
        one.close()
        one.items.append({**one.text(MORE), "id": f"msg_more{number}"})
        one.step()
    return one


def _delegating() -> Session:
    """A sub-agent works beside the main one: the same prompt, a thread of its own that names its parent."""
    one, (head, rules), place = _session()
    one.items = [head, rules, place]
    one.user(GOAL)
    one.step()
    own = {"thread-id": "01a2-sub", "x-codex-parent-thread-id": "01a2-cx", "x-openai-subagent": "collab_spawn"}
    one.delegate([head, rules, place, one.text(TASK)], '{"agent_id":"01a2-sub"}', headers=own)
    done = '{"agent_path":"01a2-sub","status":{"completed":"big1.txt holds readings."}}'
    one.items.append(one.text(f"<subagent_notification>\n{done}\n</subagent_notification>"))
    one.step()
    one.close()
    one.user(CORRECTION)
    one.step()
    return one
