"""What is said and done in each scenario: the user's words, the model's steps, and what the model refuses."""

from __future__ import annotations

from dataclasses import dataclass

GOAL = (
    "Port the CSV parser in app.py to a streaming parser. Constraint: never edit legacy.py. Read the big files first."
)
CORRECTION = "No, wait: the separator is a semicolon, not a comma. Keep going with the remaining big files."
MORE = "Now read big6.txt as well."
LAST = "Read big8.txt, then finish."
TASK = "SUBTASK: read big1.txt and report what it holds."
# A summary that leaves the user's words out.
NOTES = "Files big1 to big4 were read; the port of the parser is under way; the next step is to read big5."
END = "This turn is finished"  # opens the closing words of each turn


@dataclass(frozen=True, slots=True)
class Step:
    """One answer of the model to a request of the conversation."""

    command: str = ""  # run with whatever shell tool the agent offers
    text: str = ""
    delegate: bool = False  # a sub-agent is asked to do TASK
    full: bool = False  # the reported usage says that the window is full
    refuse: bool = False  # the prompt is too long, in whatever form the agent's request comes
    waits: bool = False  # the command takes its time: whoever wants to interrupt does it now


@dataclass(frozen=True, slots=True)
class Scenario:
    """A session: one tuple of steps for each thing that the user says."""

    name: str
    said: tuple[str, ...]
    turns: tuple[tuple[Step, ...], ...]
    task: tuple[Step, ...] = ()  # the sub-agent's steps
    steered: str = ""  # said while a command of the first turn still runs
    room: int = 0  # bytes by which a body may outgrow the first one, 0 = any
    compacts: int = 0  # compactions of the agent's own that the scenario is about
    cuts: bool = False  # whether Goalkeeper itself has to compact
    assists: bool = False  # whether Goalkeeper is told to add the user's words to the agent's order to summarise


def _read(*numbers: int, full: bool = False) -> tuple[Step, ...]:
    return tuple(Step(f"cat big{number}.txt", full=full) for number in numbers)


def _end(number: int, *, full: bool = False) -> Step:
    return Step(text=f"{END}: turn {number}.", full=full)


COMPACTIONS = Scenario(
    "compactions",
    (GOAL, CORRECTION, MORE, LAST),
    (
        (*_read(1, 2), _end(1)),
        (*_read(3), *_read(4, full=True), *_read(5), _end(2, full=True)),
        (*_read(6, full=True), *_read(7), _end(3, full=True)),
        (*_read(8), _end(4)),
    ),
    compacts=2,
)
STEER = Scenario(
    "steer",
    (GOAL, MORE, LAST),
    (
        (Step("ls"), Step("sleep 4; echo slept", waits=True), *_read(1), _end(1)),
        (*_read(6, full=True), *_read(7), _end(2, full=True)),
        (*_read(8), _end(3)),
    ),
    steered=CORRECTION,
    compacts=1,
)
SUB_AGENT = Scenario(
    "sub-agent",
    (GOAL, CORRECTION, LAST),
    (
        (Step("ls"), Step(delegate=True), _end(1)),
        (*_read(4, full=True), Step(delegate=True), *_read(5), _end(2, full=True)),
        (*_read(8), _end(3)),
    ),
    task=(*_read(1), Step(text="SUBTASK DONE: big1.txt holds sensor readings.")),
    compacts=1,
)
BESIDE = Scenario(  # the sub-agent works while the main one goes on
    "sub-agent-beside",
    (GOAL, CORRECTION, LAST),
    (
        (Step("ls"), Step(delegate=True), Step("sleep 5; echo slept"), *_read(2), _end(1)),
        (*_read(4, full=True), Step(delegate=True), Step("sleep 5; echo slept"), *_read(5), _end(2, full=True)),
        (*_read(8), _end(3)),
    ),
    task=SUB_AGENT.task,
    compacts=1,
)
OVERFLOW = Scenario(  # the model's window is really full: Goalkeeper compacts before the agent hears of it
    "overflow",
    (GOAL, CORRECTION, LAST),
    ((*_read(1, 2, 3), _end(1)), (*_read(4, 5, 6), _end(2)), (*_read(8), _end(3))),
    room=34_000,
    cuts=True,
)
REFUSED = Scenario(  # the upstream refuses Goalkeeper's shorter body too: the agent has to help itself
    "refused",
    (GOAL, CORRECTION, LAST),
    (
        (*_read(1, 2), _end(1)),
        (*_read(3, 4), Step(refuse=True), *_read(5), _end(2)),
        (*_read(8), _end(3)),
    ),
    compacts=1,
)
LATE = Scenario(  # the agent compacts when it has the user's newest words, and before the model has seen them
    "late",
    (GOAL, CORRECTION, LAST),
    (
        (
            *_read(1, 2),
            Step(text=f"{END}: turn 1.\n" + "These rows look alike; nothing in them stands out.\n" * 500, full=True),
        ),
        (*_read(3), _end(2)),
        (*_read(8), _end(3)),
    ),
    compacts=1,
)
ASSIST = Scenario("assist", COMPACTIONS.said, COMPACTIONS.turns, compacts=2, assists=True)
SLIDING = Scenario("sliding", COMPACTIONS.said, COMPACTIONS.turns, compacts=1)  # a window that moves is one long cut
ONE_TURN = Scenario(  # for agents that can't be given a second message, and shorten only when they are refused
    "one-turn",
    (GOAL,),
    (
        (
            *_read(1, 2),
            Step(refuse=True),
            *_read(3, 4, 5),
            _end(1),
        ),
    ),
    compacts=1,
)
ERRAND = Scenario(  # for agents that take one order and end by a command
    "errand",
    (GOAL,),
    ((*_read(1, 2, 3, 4, 5, 6), Step("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT", text=f"{END}: turn 1.")),),
    room=34_000,
    cuts=True,
)
TALK = Scenario(  # for agents without tools, that only talk
    "talk",
    (GOAL, CORRECTION, MORE, LAST),
    tuple(
        (Step(text=f"{END}: turn {number}.\n" + "These rows look alike; nothing stands out.\n" * 60),)
        for number in range(1, 5)
    ),
    compacts=1,
)
_ALL = (COMPACTIONS, STEER, SUB_AGENT, BESIDE, OVERFLOW, REFUSED, LATE, ASSIST, SLIDING, ONE_TURN, ERRAND, TALK)
SCENARIOS = {one.name: one for one in _ALL}
