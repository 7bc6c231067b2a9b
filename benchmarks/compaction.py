"""What a long session costs under a budget, and what is left of it: 150 tool turns with a goal and two corrections.

The model is a stand-in in this process that keeps what it receives and calls the next tool. Figures:

tokens_sent      tokens that were forwarded, as o200k counts them; tokens_all_sent: what the agent sent, uncut
cacheable_share  the part of them in which a body begins as the one before it
cost_index       new tokens + cacheable tokens / 10
breaks           requests that don't begin with the whole body before them
paths_kept, errors_kept   share of the files read by earlier steps, and of the errors met, that a body still names
goal, corrections         requests that hold them word for word in the role user

Run: python -m benchmarks.compaction [--budget 32000] [--turns 150]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from benchmarks.client import Connection
from benchmarks.gen import CORRECTION, GOAL, Chat
from benchmarks.processes import goalkeeper
from benchmarks.upstream import completion, serve
from proxy.tokens import load_encoder

SECOND = "Actually, leave `round_total()` as it is; undo what you did to it in step 80 (ref RND-5e)."
SAID_AT = {60: CORRECTION, 90: SECOND}
CHATTER_EACH = 15
RESULT_BYTES = 3_600
ERROR_EACH = 4
CACHED_PRICE = 0.1  # of a token that the provider has in its cache

Messages = list[dict[str, Any]]


@dataclass(slots=True)
class Recorder:
    """The model: keeps the bodies that it gets, and answers with the call that it was given before."""

    bodies: Messages = field(default_factory=list)
    next: dict[str, Any] = field(default_factory=dict)

    def reply(self, body: bytes) -> bytes:
        """Answers one request."""
        self.bodies.append(json.loads(body))
        return completion(self.next)


@contextmanager
def recording(recorder: Recorder) -> Iterator[str]:
    """Serves the recorder from a thread of this process."""
    loop = asyncio.new_event_loop()
    server = loop.run_until_complete(serve(0, recorder.reply))
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    loop.call_soon_threadsafe(loop.stop)
    thread.join()


@dataclass(frozen=True, slots=True)
class Step:
    """What a turn left that has to be found again."""

    turn: int
    path: str
    error: str


def drive(port: int, recorder: Recorder, turns: int, budget: int) -> tuple[list[Messages], list[Step], list[str]]:
    """Runs the session; gives what the agent sent, the steps, and what became of the pins."""
    connection, chat = Connection(port), Chat(11)
    sent, steps, pins = [], [], []
    for turn in range(turns):
        answer = recorder.next = chat.call()
        reply = connection.post(chat.body(), f"x-goalkeeper-budget: {budget}\r\n" if budget else "")
        if reply.status != 200:
            raise RuntimeError(f"status {reply.status}: {reply.body[:200]!r}")
        sent.append(list(chat.messages))
        pins.append(reply.headers["x-goalkeeper-pins"])
        error = f"E{turn * 7919 + 4096:05x}" if turn % ERROR_EACH == 0 else ""
        closing = f"\nerror {error}: check failed\nexit code 3" if error else ""
        chat.take(answer, RESULT_BYTES, closing)
        steps.append(Step(turn, json.loads(answer["tool_calls"][0]["function"]["arguments"])["path"], error))
        if turn in SAID_AT:
            chat.say(SAID_AT[turn])
        elif turn % CHATTER_EACH == CHATTER_EACH - 1:
            chat.say("ok, go on with the next file")
    return sent, steps, pins


class Measure:
    """Counts tokens as a chat model does, about: texts, names, arguments, and four for each message; each text once."""

    def __init__(self) -> None:
        self._count = load_encoder()
        self._known: dict[str, int] = {}

    def tokens(self, messages: Messages) -> int:
        """Gives the tokens of messages."""
        return sum(4 + sum(map(self._of, _texts(message))) for message in messages)

    def _of(self, text: str) -> int:
        if text not in self._known:
            self._known[text] = self._count(text)
        return self._known[text]


def _texts(message: dict[str, Any]) -> Iterator[str]:
    yield message.get("content") or ""
    for call in message.get("tool_calls") or ():
        yield call["function"]["name"]
        yield call["function"]["arguments"]


def prefixes(bodies: list[Messages], measure: Measure) -> dict[str, Any]:
    """Follows the forwarded bodies: what a provider's prefix cache can serve, and where it can't."""
    total = cached = breaks = 0
    before: Messages = []
    for body in bodies:
        shared = [one for one, _ in takewhile(lambda pair: pair[0] == pair[1], zip(body, before, strict=False))]
        total += measure.tokens(body)
        cached += measure.tokens(shared)
        breaks += len(shared) < len(before)
        before = body
    return {
        "tokens_sent": total,
        "cacheable_share": round(cached / total, 4),
        "cost_index": round(total - cached + cached * CACHED_PRICE),
        "breaks": breaks,
    }


def kept(bodies: list[Messages], steps: list[Step]) -> dict[str, float]:
    """Says how much of the evidence of earlier steps each forwarded body still holds."""
    found = {"paths": [0, 0], "errors": [0, 0]}
    for number, body in enumerate(bodies):
        text = json.dumps(body, ensure_ascii=False)
        for step in steps[:number]:
            for kind, evidence in (("paths", step.path), ("errors", step.error)):
                found[kind][0] += bool(evidence) and evidence in text
                found[kind][1] += bool(evidence)
    return {f"{kind}_kept": round(there / max(all_, 1), 4) for kind, (there, all_) in found.items()}


def held(bodies: list[Messages], text: str, since: int) -> str:
    """Says in how many of the bodies from a turn on the user says a text."""
    due = bodies[since:]
    users = ["\n".join(str(one["content"]) for one in body if one["role"] == "user") for body in due]
    return f"{sum(text in words for words in users)}/{len(due)}"


def main() -> dict[str, Any]:
    """Runs the session under the budget and prints JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", type=int, default=32_000)
    parser.add_argument("--turns", type=int, default=150)
    given = parser.parse_args()
    recorder, measure = Recorder(), Measure()
    with recording(recorder) as upstream, goalkeeper(upstream) as ours:
        sent, steps, pins = drive(ours.port, recorder, given.turns, given.budget)
    bodies = [body["messages"] for body in recorder.bodies]
    figures = {
        "budget": given.budget,
        "turns": given.turns,
        **prefixes(bodies, measure),
        "tokens_max": max(measure.tokens(body) for body in bodies),
        "tokens_all_sent": sum(measure.tokens(body) for body in sent),
        **kept(bodies, steps),
        "goal": held(bodies, GOAL, 0),
        "corrections": [held(bodies, text, turn + 1) for turn, text in SAID_AT.items()],
        "pins_missing": sum(pin.partition("/")[0] != pin.partition("/")[2] for pin in pins),
    }
    print(json.dumps(figures, indent=1))
    return figures


if __name__ == "__main__":
    main()
