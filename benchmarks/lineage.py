"""What linking one request costs: a talk of 418 messages (800 kB) that goes on, and the same at other lengths.

Run: python -m benchmarks.lineage
"""

from __future__ import annotations

import itertools
import json
import time
from pathlib import Path
from statistics import median

from proxy.clients import load_profiles
from proxy.lineage import Engine, KeyReader, Link, Request
from proxy.transcript import Message, Part, Transcript, digest_of

PROFILE = load_profiles([Path(__file__).parent.parent / "config" / "clients"]).generic
SYSTEM = "You are a coding agent working in a repository.\n" + "\n".join(
    f"Rule {n}: keep diffs small." for n in range(30)
)


def message(role: str, *parts: Part) -> Message:
    """Makes a message."""
    raw = json.dumps([role, [part.text for part in parts], [part.call_id for part in parts]]).encode()
    return Message(raw, digest_of(raw), role, parts)


def step(turn: int, tag: str) -> tuple[Message, Message, str, str]:
    """Gives one call with its result, as a long agent session brings them."""
    arguments = json.dumps({"path": f"src/mod_{turn:03}.py"})
    text, name = f"Reading module {turn} next, as the plan says.", f"call_{turn:03}"
    call = message("assistant", Part("text", text), Part("call", arguments, "read_file", name))
    output = message("tool", Part("result", f"{tag} {turn}: " + f"row {turn} of the table\n" * 170, call_id=name))
    return call, output, text, arguments


class Talk:
    """A session that grows by one step with each request."""

    def __init__(self, engine: Engine, reader: KeyReader, tag: str) -> None:
        self._engine, self._reader, self._tag = engine, reader, tag
        goal = message(
            "user", Part("text", "Port the invoicing service from Flask to Litestar, keep the public routes.")
        )
        self.body = [message("system", Part("text", f"{SYSTEM}\nSession {tag}.")), goal]
        self._turn = 0

    def request(self) -> Request:
        """Reads the body as it stands."""
        stream = True
        transcript = Transcript("chat", "m", tuple(self.body), ("read_file",), b"", stream, 0, "", b"", b"")
        return self._reader.request(transcript, PROFILE, side=PROFILE.side(transcript))

    def go(self) -> tuple[float, float, float, Link]:
        """Sends the body, takes an answer; gives the seconds of reading, of linking, and of taking the answer."""
        start = time.perf_counter()
        request = self.request()
        read = time.perf_counter()
        self._engine.lookups(request)
        link = self._engine.identify(request)
        linked = time.perf_counter()
        call, output, text, arguments = step(self._turn, self._tag)
        part = call.parts[-1]
        done = time.perf_counter()
        self._engine.answer(link, text, [_Call("read_file", arguments, part.call_id)], complete=True)
        answered = time.perf_counter()
        self.body += [call, output]
        if self._turn % 10 == 9:
            self.body.append(message("user", Part("text", f"ok, go on with the next module ({self._turn})")))
        self._turn += 1
        return read - start, linked - read, answered - done, link


class _Call:
    def __init__(self, name: str, arguments: str, call_id: str) -> None:
        self.name, self.arguments, self.id = name, arguments, call_id


def measure(sessions: int) -> None:
    """Prints the median cost of a request at several lengths, with other sessions of the same words beside."""
    count = itertools.count()
    reader = KeyReader()
    engine = Engine(lambda: f"id{next(count)}", reader)
    talks = [Talk(engine, reader, f"s{n}") for n in range(sessions)]
    marks = {100: [], 200: [], 418: [], 800: []}  # type: dict[int, list[tuple[float, float, float]]]
    while len(talks[0].body) < max(marks) + 20:
        for talk in talks:
            length = len(talk.body)
            *times, link = talk.go()
            near = next((mark for mark in marks if mark <= length < mark + 16), None)
            if near and talk is talks[0]:
                assert link.relation == "extends", link
                marks[near].append((times[0], times[1], times[2]))
    for mark, rows in marks.items():
        read, linked, answered = (median(column) * 1e3 for column in zip(*rows, strict=True))
        size = sum(len(item.raw) for item in talks[0].body[:mark]) // 1000
        print(
            f"{sessions} sessions, {mark:4} messages, {size:5} kB: read {read:.3f} ms, link {linked:.3f} ms, "
            f"together {read + linked:.3f} ms, answer {answered:.3f} ms"
        )


def cold() -> None:
    """Prints the cost of the first sight of a long body, and of sending it again."""
    count = itertools.count()
    reader = KeyReader()
    engine = Engine(lambda: f"id{next(count)}", reader)
    talk = Talk(Engine(lambda: "x", KeyReader()), KeyReader(), "cold")
    talk.body += [item for turn in range(208) for item in step(turn, "cold")[:2]]
    transcript = talk.request().transcript
    start = time.perf_counter()
    engine.identify(reader.request(transcript, PROFILE))
    first = time.perf_counter() - start
    again = []
    for _ in range(1000):
        start = time.perf_counter()
        engine.identify(reader.request(transcript, PROFILE))
        again.append(time.perf_counter() - start)
    print(f"first sight of {len(talk.body)} messages: {first * 1e3:.2f} ms")
    print(f"the same bytes again: {median(again) * 1e3:.3f} ms")


if __name__ == "__main__":
    measure(1)
    measure(4)
    cold()
