"""Whatever agents do, nobody gets another session's words, and a restart changes no decision."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.lineage import Link
from proxy.transcript import Message, digest_of
from tests.lineage.build import Ask, Proxy, reads, result, says, system, user

SHARED = ["ok, go on with the next module", "and now the tests, please", "go on", "No, that is wrong, revert it."]
SUMMARY = "Please summarize our conversation so far."
KINDS = st.sampled_from(["turn", "turn", "turn", "say", "say", "own", "again", "rewind", "window", "goal", "compact"])
MOVES = st.lists(st.tuples(st.integers(0, 2), KINDS, st.integers(0, 3)), min_size=3, max_size=24)


@dataclass
class Agent:
    """One session: it has the same words as all others, but for those that carry its name."""

    name: str
    strong: bool
    ids: bool
    body: list[Message] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    turn: int = 0

    def __post_init__(self) -> None:
        self.body = [system()]
        self.say(f"Port the invoicing service for {self.name}.")

    def say(self, words: str) -> None:
        self.body.append(user(words))
        self.said.append(words)

    def call(self) -> Ask:
        tail = digest_of(f"{self.name} {self.turn}".encode())[:16]
        return reads(f"src/mod_{self.turn}.py", f"call_{tail}" if self.strong else f"call_{self.turn}")

    @property
    def client(self) -> str:
        return f"ses-{self.name}" if self.ids else ""

    def send(self, proxy: Proxy) -> Link:
        """Sends the body, and takes a call as the answer."""
        call, text = self.call(), f"Reading module {self.turn} next, as planned."
        link = proxy.send(self.body, text, call, client=self.client)
        output = result(call.id, f"{self.name} turn {self.turn}: " + "row of the table " * 8)
        self.body += [says(text, call), output]
        self.turn += 1
        return link

    def move(self, proxy: Proxy, kind: str, number: int) -> list[Link]:
        """Does one thing that agents do."""
        if kind == "say":
            self.say(SHARED[number])
        elif kind == "own":
            self.say(f"Keep the {number} routes of {self.name} as they are.")
        elif kind == "again":
            return [proxy.send(self.body, client=self.client), self.send(proxy)]
        elif kind == "rewind" and len(self.body) > 6:
            del self.body[-2 * (1 + number % 2) :]
        elif kind in ("window", "goal"):
            self._cut(kind)
        elif kind == "compact":
            return [self._compact(proxy), self.send(proxy)]
        return [self.send(proxy)]

    def _cut(self, kind: str) -> None:
        starts = [place for place, item in enumerate(self.body) if item.role == "assistant"]
        if len(starts) > 3:
            head = self.body[:2] if kind == "goal" and self.body[1].role == "user" else self.body[:1]
            self.body = [*head, *self.body[starts[-3] :]]
            self.say("continue")

    def _compact(self, proxy: Proxy) -> Link:
        text = f"Summary {self.turn} for {self.name}:\nThe port is under way, half of all modules are read by now."
        link = proxy.send([*self.body, user(SUMMARY)], text, tools=(), client=self.client)
        self.body = [system(), user(f"Notes of what came before:\n{text}"), user("go on")]
        self.said.append("go on")
        return link


def foreign(link: Link, agents: list[Agent], own: Agent) -> list[str]:
    """Gives words on this link that only other agents said."""
    words = [turn.text for turn in (*link.base, *link.humans)]
    return [text for text in words for other in agents if other is not own and other.name in text]


def agents_of(strong: bool, ids: bool) -> list[Agent]:
    return [Agent(name, strong, ids) for name in ("alpha", "bravo", "delta")]


@settings(max_examples=30, deadline=None)
@given(MOVES, st.booleans(), st.booleans())
def test_no_session_gets_words_of_another(moves: list[tuple[int, str, int]], strong: bool, ids: bool) -> None:
    proxy, agents = Proxy(), agents_of(strong, ids)
    for who, kind, number in moves:
        for link in agents[who].move(proxy, kind, number):
            assert foreign(link, agents, agents[who]) == []
            assert {turn.text for turn in link.base} & {turn.text for turn in link.humans} == set()


@settings(max_examples=30, deadline=None)
@given(MOVES)
def test_with_a_session_id_no_human_word_is_lost_by_cuts(moves: list[tuple[int, str, int]]) -> None:
    proxy, agents = Proxy(), agents_of(strong=True, ids=True)
    for who, kind, number in moves:
        agent = agents[who]
        links = agent.move(proxy, "say" if kind == "rewind" else kind, number)
        shown = {turn.text for turn in (*links[-1].base, *links[-1].humans)}
        assert set(agent.said) <= shown


def decision(link: Link) -> tuple[object, ...]:
    """Gives all that a pipeline acts on."""
    said = [(turn.key, turn.text, turn.number, turn.asked) for turn in link.humans]
    base = [(turn.key, turn.text, turn.number) for turn in link.base]
    return (
        link.session,
        link.branch,
        link.line,
        link.relation,
        link.match,
        link.epoch,
        base,
        said,
        [(key.kind, key.hash) for key in link.keys],
        link.chain,
        link.numbers,
        link.summary_keys,
        link.candidates,
    )


@settings(max_examples=40, deadline=None)
@given(MOVES, st.booleans(), st.booleans(), st.lists(st.booleans(), min_size=24, max_size=24))
def test_a_restart_changes_no_decision(
    moves: list[tuple[int, str, int]], strong: bool, ids: bool, restarts: list[bool]
) -> None:
    steady, restarted = Proxy(), Proxy()
    first, second = agents_of(strong, ids), agents_of(strong, ids)
    for (who, kind, number), restart in zip(moves, restarts, strict=False):
        if restart:
            restarted.restart()
        expected = [decision(link) for link in first[who].move(steady, kind, number)]
        assert [decision(link) for link in second[who].move(restarted, kind, number)] == expected


@settings(max_examples=20, deadline=None)
@given(MOVES, st.booleans())
def test_turn_numbers_rise_along_a_body(moves: list[tuple[int, str, int]], ids: bool) -> None:
    proxy, agents = Proxy(), agents_of(strong=True, ids=ids)
    for who, kind, number in moves:
        for link in agents[who].move(proxy, kind, number):
            said = [turn.number for turn in link.humans]
            assert all(value > 0 for value in said)
            assert len(link.numbers) == len(link.keys) or link.relation in ("summary", "side")
