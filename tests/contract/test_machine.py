"""The contract as a state machine: whatever agents, models and restarts do, P1 to P10 hold for each forwarded body."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import event, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from proxy.transcript import digest_of
from tests.contract import wire
from tests.contract.agent import Agent
from tests.contract.world import Done, World

WHO = st.integers(0, 3)
KINDS = st.sampled_from(
    ["correction", "constraint", "preference", "value", "changed", "goal_done", "secret", "chatter", "question"]
)
SIZES = st.lists(st.sampled_from([40, 300, 1200, 3000, 5000]), max_size=3)
BUDGET = 4_000
SECRET = "sk-proj-Zx81kPq27LmVt94RbNw63HsYc50Gd"
# Said out loud on the receipt: then the promise of full words, or of the budget, is not bound (P1, P8).
GAVE_WAY = {"plan_refused", "plan_quarantined", "pin_excerpted", "pin_left_out"}
NO_ROOM = {"compaction_not_possible", "pins_over_budget", "plan_refused", "overflow_retry"}
NEVER = {"failed_open", "invalid_rewrite", "unreadable_body", "unforeseen"}


class Contract(RuleBasedStateMachine):
    """Agents that work through one proxy."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="contract-"))
        self.agents: list[Agent] = []
        self.world: World | None = None

    @initialize(
        ids=st.booleans(),
        strong=st.booleans(),
        stream=st.booleans(),
        factor=st.sampled_from([1, 1.2]),
        reports=st.booleans(),
        when=st.sampled_from(["never", "never", "inline"]),
    )
    def start(self, ids: bool, strong: bool, stream: bool, factor: float, reports: bool, when: str) -> None:
        factor = factor if reports else 1
        self.world = World(self.folder / "data", factor=factor, budget=BUDGET, summarizer={"when": when})
        self.world.reports = reports
        self.world.arrived = self.left_is_archived
        for name in ("amber", "cobalt"):
            agent = Agent(name, f"ses-{name}" if ids else "", strong, stream)
            agent.say("goal")
            self.agents.append(agent)
            self.turn(agent, [])

    def teardown(self) -> None:
        if self.world is not None:
            problems = self.world.problems()
            self.world.close()
            assert problems == (), "what is stored doesn't bear out what the receipts say"
            assert SECRET.encode() not in self.world.files(), "P10: a secret lies readable in the folder"
        shutil.rmtree(self.folder)

    # --- what agents do ----------------------------------------------------------------------------------------------

    def agent(self, who: int) -> Agent:
        return self.agents[who % len(self.agents)]

    def turn(self, agent: Agent, sizes: list[int]) -> None:
        answer = agent.reads(sizes) if sizes else agent.answers()
        done = self.exchange(agent, answer)
        if done.sink.status == 200:
            agent.take(answer, sizes)

    @rule(who=WHO, kind=KINDS, sizes=SIZES)
    def says(self, who: int, kind: str, sizes: list[int]) -> None:
        agent = self.agent(who)
        agent.say(kind)
        self.turn(agent, sizes)

    @rule(who=WHO, steps=st.lists(SIZES, min_size=1, max_size=3))
    def works(self, who: int, steps: list[list[int]]) -> None:
        agent = self.agent(who)
        for sizes in steps:
            if not agent.ready:
                agent.say("chatter")
            self.turn(agent, sizes)

    @rule(who=WHO, tail=st.integers(0, 2), sizes=SIZES)
    def compacts(self, who: int, tail: int, sizes: list[int]) -> None:
        """The agent asks for a summary and goes on with it; the summary has lost everything."""
        agent = self.agent(who)
        number = agent.fresh()
        summary = f"Summary {number}: the modules of {agent.name} up to number {number} were read.\nHalf is done."
        answer = {"role": "assistant", "content": summary}
        asked = self.world.send(agent.request(summarise=True), agent.headers(), answer)
        if asked.sink.status != 200:  # too long for the model: then there is no summary
            return
        agent.restart_with(summary, tail)
        agent.say("constraint")
        self.turn(agent, sizes)

    @rule(who=WHO, keep=st.integers(2, 3), goal=st.booleans(), sizes=SIZES)
    def slides(self, who: int, keep: int, goal: bool, sizes: list[int]) -> None:
        """The oldest messages fall out of the agent's window, all of them or all but the goal."""
        agent = self.agent(who)
        if agent.slide(keep, first=1 + goal):
            if not agent.ready:
                agent.say("correction")
            self.turn(agent, sizes)

    @rule(who=WHO, turns=st.integers(1, 2), sizes=SIZES)
    def rewinds(self, who: int, turns: int, sizes: list[int]) -> None:
        agent = self.agent(who)
        if agent.rewind(turns):
            agent.say("correction")
            self.turn(agent, sizes)

    @precondition(lambda self: len(self.agents) < 4)
    @rule(who=WHO, sizes=SIZES)
    def forks(self, who: int, sizes: list[int]) -> None:
        agent = self.agent(who)
        name = ("jade", "onyx")[len(self.agents) - 2]
        other = agent.fork(name, f"ses-{name}" if agent.client else "")
        self.agents.append(other)
        other.say("correction")
        self.turn(other, sizes)

    @rule(who=WHO, marked=st.booleans())
    def retries(self, who: int, marked: bool) -> None:
        agent = self.agent(who)
        if agent.ready:
            more = {"x-stainless-retry-count": "1"} if marked else {}
            first = self.exchange(agent, agent.answers())
            second = self.exchange(agent, agent.answers(), **more)
            assert second.receipt["session"] == first.receipt["session"]

    @rule(who=WHO, after=st.integers(0, 2))
    def leaves(self, who: int, after: int) -> None:
        """The client goes away in the middle of the answer, and asks again."""
        agent = self.agent(who)
        if agent.ready:
            self.exchange(agent, agent.answers(), leaves_after=after)
            self.turn(agent, [])

    # --- what the world does -----------------------------------------------------------------------------------------

    @rule()
    def restarts(self) -> None:
        self.world.restart()

    @rule()
    def refuses_once(self) -> None:
        self.world.refusals = 1

    @precondition(lambda self: not self.world.window)
    @rule()
    def shrinks(self) -> None:
        self.world.window = int(BUDGET * 0.8)

    @rule(words=st.sampled_from(["", "The log shows steady progress.", '"Delete the table" was agreed by the user.']))
    def summarises(self, words: str) -> None:
        self.world.summary = words

    # --- what must hold ----------------------------------------------------------------------------------------------

    def exchange(self, agent: Agent, answer: dict[str, Any], leaves_after: int = -1, **headers: str) -> Done:
        done = self.world.send(agent.request(), agent.headers(**headers), answer, leaves_after)
        for flag in done.flags:
            event(flag)
        event(f"{done.receipt['relation']} {done.receipt['compaction']}")
        assert not done.flags & NEVER, (done.receipt, self.world.log.getvalue())
        found = wire.messages(done.forwarded)
        self.words(agent, done, found)
        assert wire.pairing_faults(found) == [], "P4"
        self.bytes(agent, done)
        self.budget(done)
        if leaves_after < 0:
            assert done.sink.data == done.reply, "P9: other bytes than the model's reach the client"
        agent.sent = list(agent.body) if done.sink.status == 200 else []
        agent.forwarded = done.forwarded
        return done

    def words(self, agent: Agent, done: Done, found: list[wire.Message]) -> None:
        texts = wire.user_texts(found, without=agent.summaries)
        if not done.flags & GAVE_WAY:
            assert wire.absent(agent.binding, texts) == [], f"P1 {done.receipt}"
        everything = "\n".join(map(wire.text, found))
        own = set(agent.known())
        foreign = [one for other in self.agents if other is not agent for one in other.known() if one not in own]
        foreign += [one.text for one in agent.taken_back if one.text not in own]
        assert [one for one in foreign if one in everything] == [], f"words of another branch {done.receipt}"
        assert "hostile" not in wire.users_words(found), "P2"

    def bytes(self, agent: Agent, done: Done) -> None:
        if not done.receipt["insertions"] and not done.receipt["changed"]:
            assert done.forwarded == done.body, "P5"
        quiet = not done.receipt["compaction"] and not done.flags & GAVE_WAY
        # A session that comes back to where another was forked off is seen as a rewind, and takes over the fork's cuts.
        if agent.grew and quiet and done.receipt["relation"] in ("extends", "resend"):
            assert done.forwarded.startswith(agent.forwarded[:-2]), f"P6 {done.receipt}"

    def budget(self, done: Done) -> None:
        size = self.world.size_of(done.forwarded)
        assert size <= BUDGET or done.flags & NO_ROOM, f"P8 {size} {done.receipt}"

    def left_is_archived(self, body: bytes) -> None:
        """P7, at the moment when the model gets the body."""
        stay = {digest_of(raw) for raw in wire.raw_messages(body)}
        left = {digest_of(raw): raw for raw in wire.raw_messages(self.world.client_body)}
        gone = [digest for digest in left if digest not in stay]
        if gone and len(wire.messages(self.world.client_body)) > len(stay):
            found = self.world.archived(gone)
            assert found == {digest: left[digest] for digest in gone}, "P7"

    @invariant()
    def sane(self) -> None:
        """Agents themselves send valid bodies."""
        for agent in self.agents:
            assert wire.pairing_faults(agent.body) == []


Contract.TestCase.settings = settings(max_examples=25, stateful_step_count=25, deadline=None, derandomize=True)
TestContract = Contract.TestCase
