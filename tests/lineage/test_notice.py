"""A client that cuts its history without a model: its own note of it leads back, or nothing does."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.lineage import Link
from proxy.transcript import Message
from tests.lineage.build import Ask, Proxy, base, humans, result, says, system, user

GOAL = "Port the invoicing service from Flask to Litestar."
FIX = "No, do not use Redis for the queue, use SQLite."
PROMPT = "You are Cline, a coding agent.\nDirectory: /srv/shop, branch main, a Python project."


@pytest.fixture
def proxy() -> Proxy:
    return Proxy()


def run(command: str, number: int) -> Ask:
    return Ask("run_commands", f'{{"commands": ["{command}"]}}', f"call_{number}")


def note(*commands: str, said: Sequence[str] = ()) -> str:
    """The note that the client puts behind the goal."""
    words = "\n\nYour recent responses:\n" + "\n---\n".join(said) if said else ""
    listed = "\n".join(commands)
    return (
        "<SYSTEM_NOTICE>\nEarlier context was compacted. Summary of your actions after the request above:\n"
        f"Files read:\n\n\nFiles edited:\n\n\nCommands ran:\n{listed}{words}</SYSTEM_NOTICE>"
    )


class Talk:
    """A session of cline that works off commands, each with a word on it."""

    def __init__(self, proxy: Proxy, goal: str = GOAL, *, words: bool = True) -> None:
        self._proxy = proxy
        self._words = words
        self.body: list[Message] = [system(PROMPT), user(goal)]
        self.commands: list[str] = []
        self.said: list[str] = []

    def work(self, *commands: str) -> Link:
        """Runs commands; gives the link of the last request."""
        for command in commands:
            self.commands.append(command)
            call = run(command, len(self.commands))
            words = f"I will now run {command} and look at its output." if self._words else ""
            link = self.send(words, call)
            self.body += [says(words, call), result(call.id, "done")]
            self.said += [words] if words else []
        return link

    def send(self, answer: str = "", *calls: Ask) -> Link:
        """Sends the body as it stands."""
        return self._proxy.send(self.body, answer, *calls, profile="cline", tools=("run_commands",))

    def cut(self, *kept: Message) -> None:
        """Keeps the goal, and says what was done."""
        goal = self.body[1].parts[0].text
        self.body = [system(PROMPT), user(goal, note(*self.commands, said=self.said[-3:])), *kept]


def test_what_was_said_before_the_cut_comes_back(proxy):
    talk = Talk(proxy)
    talk.work("uv run pytest tests/invoices", "uv run alembic upgrade head")
    talk.body.append(user(FIX))
    before = talk.work("grep -rn redis src/queue --include=*.py")
    talk.cut()
    link = talk.send("Going on with the queue, as you said: SQLite.")
    assert (link.relation, link.session) == ("compacted", before.session)
    assert (base(link), humans(link)) == ([FIX], [GOAL])
    talk.body += [says("Going on with the queue, as you said: SQLite.")]
    again = talk.work("uv run pytest tests/queue -x --lf")
    assert (again.relation, again.branch, base(again)) == ("extends", link.branch, [FIX])
    talk.cut()
    assert base(talk.send()) == [FIX]
    proxy.restart()
    assert (talk.send().session, base(talk.send())) == (before.session, [FIX])


def test_after_a_restart_it_comes_back_too(proxy):
    talk = Talk(proxy)
    talk.work("uv run pytest tests/invoices")
    talk.body.append(user(FIX))
    talk.work("grep -rn redis src/queue --include=*.py")
    talk.cut()
    proxy.restart()
    assert base(talk.send()) == [FIX]


def test_commands_alone_lead_back_when_the_model_says_nothing(proxy):
    talk = Talk(proxy, words=False)
    talk.work("uv run pytest tests/invoices/test_routes.py", "grep -rn redis src/queue --include=*.py")
    talk.body.append(user(FIX))
    talk.work("uv run alembic upgrade head --sql")
    talk.cut()
    assert base(talk.send()) == [FIX]


def test_two_talks_that_did_the_same_are_told_apart_by_nothing_and_get_nothing(proxy):
    one, other = Talk(proxy), Talk(proxy)
    commands = ("uv run pytest tests/invoices", "grep -rn redis src/queue --include=*.py")
    one.work(commands[0])
    one.body.append(user(FIX))
    sessions = {one.work(commands[1]).session, other.work(*commands).session}
    for talk in (one, other):
        talk.cut()
        link = talk.send()
        assert (link.relation, base(link)) == ("new", [])
        assert set(link.candidates) == sessions


def test_of_two_talks_with_one_opening_each_gets_its_own_words_back(proxy):
    one, other = Talk(proxy), Talk(proxy)
    one.work("uv run pytest tests/invoices")
    one.body.append(user(FIX))
    one.work("grep -rn redis src/queue --include=*.py")
    other.work("uv run pytest tests/invoices")
    other.body.append(user("Keep the old routes as redirects."))
    other.work("cat src/routes/legacy.py | head -400", "uv run mypy src/routes --strict")
    other.cut()
    assert base(other.send()) == ["Keep the old routes as redirects."]
    one.cut()
    assert base(one.send()) == [FIX]


@pytest.mark.parametrize(
    "told",
    [
        note(),
        note("npm test"),
        note("uv run pytest tests/invoices"),
        note("uv run pytest tests/invoices", said=["I looked at the routes and will port them next."]),
        "Earlier context was compacted. uv run pytest tests/invoices; grep -rn redis src/queue --include=*.py",
    ],
)
def test_a_note_that_tells_of_other_work_leads_nowhere(proxy, told):
    talk = Talk(proxy)
    talk.work("uv run pytest tests/invoices")
    talk.body.append(user(FIX))
    talk.work("grep -rn redis src/queue --include=*.py")
    link = proxy.send([system(PROMPT), user(GOAL, told)], profile="cline", tools=("run_commands",))
    assert (link.relation, base(link)) == ("new", [])


def test_a_note_without_the_newest_words_is_of_another_talk(proxy):
    talk = Talk(proxy)
    talk.work("uv run pytest tests/invoices", "grep -rn redis src/queue --include=*.py")
    told = note(*talk.commands, said=talk.said)
    talk.work("uv run alembic upgrade head --sql")
    assert proxy.send([system(PROMPT), user(GOAL, told)], profile="cline", tools=("run_commands",)).relation == "new"


def test_the_same_opening_without_a_note_stays_a_talk_of_its_own(proxy):
    first = Talk(proxy)
    first.work("uv run pytest tests/invoices")
    first.body.append(user(FIX))
    first.work("grep -rn redis src/queue --include=*.py")
    first.cut()
    back = first.send()
    fresh = Talk(proxy)
    link = fresh.work("uv run pytest tests/invoices")
    assert link.session not in ("", back.session)
    assert base(link) == []


def test_another_goal_another_client_and_too_many_openings_lead_nowhere(proxy):
    talk = Talk(proxy)
    talk.work("uv run pytest tests/invoices", "grep -rn redis src/queue --include=*.py")
    talk.cut()
    notes = talk.body[1].parts[1].text
    other = proxy.send([system(PROMPT), user("Write the docs.", notes)], profile="cline", tools=("run_commands",))
    assert other.relation == "new"
    assert proxy.send(talk.body, profile="generic", tools=("run_commands",)).relation == "new"
    for _ in range(32):
        Talk(proxy).send("I begin with the routes of the service.")
    assert talk.send().relation == "new"


COMMANDS = ("uv run pytest tests/invoices", "grep -rn redis src/queue --include=*.py", "uv run mypy src --strict")
STEPS = st.lists(st.tuples(st.integers(0, 2), st.sampled_from((*COMMANDS, "say", "cut", "restart"))), max_size=24)


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_no_talk_ever_gets_words_of_another_that_began_alike(steps):
    proxy = Proxy()
    talks = [Talk(proxy) for _ in range(3)]
    for number, (which, step) in enumerate(steps):
        talk = talks[which]
        if step == "restart":
            proxy.restart()
        elif step == "cut":
            talk.cut()
        elif step == "say":
            talk.body.append(user(f"Talk {which} wants rule {number} to be kept."))
        else:
            link = talk.work(step)
            assert all(words == GOAL or words.startswith(f"Talk {which} ") for words in (*base(link), *humans(link)))
