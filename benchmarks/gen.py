"""Chats of a coding agent with tool calls, made from a seed: the same bytes on every machine.

A "token" here is 4 bytes, as in most load tools; o200k counts a third more in such text, which is full of numbers.

Run: python -m benchmarks.gen   prints what the usual sizes come to
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from typing import Any

TURN_BYTES = 3_600  # one call and its result
GOAL = "Goal: teach the importer to read semicolon files; keep the public functions, and stay on branch `imp/semi-41c`."
CORRECTION = "No, that's wrong: don't guess the delimiter. Read it from `import.delimiter` in the settings, always."
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "read_file",
            "description": "Reads a file",
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
        },
    }
]
_THINGS = (
    "row column header field quote delimiter encoding record batch reader writer buffer offset cursor schema table "
    "index cache import export report invoice ledger account currency date total rounding checksum retry timeout"
)
_DEEDS = "reads writes checks skips joins splits parses keeps drops counts sorts merges rounds trims maps"
_NOUNS, _VERBS = _THINGS.split(), _DEEDS.split()


def words(rng: random.Random, size: int) -> str:
    """Gives prose of at most so many characters."""
    parts: list[str] = []
    length = 0
    while length < size:
        parts.append(f"the {rng.choice(_NOUNS)} {rng.choice(_VERBS)} each {rng.choice(_NOUNS)}")
        length += len(parts[-1]) + 2
    return ". ".join(parts)[:size]


def output(rng: random.Random, size: int) -> str:
    """Gives what a tool may print: code, log lines and table rows, of at most so many characters."""
    lines: list[str] = []
    length = 0
    while length < size:
        noun, other, number = rng.choice(_NOUNS), rng.choice(_NOUNS), rng.randrange(10_000)
        lines.append(
            rng.choice(
                (
                    f"{len(lines) + 1:>5}  def {noun}_{other}(self, {other}: str, limit: int = {number}) -> None:",
                    f"        if {noun}.{other} is None or len({noun}) > {number}:",
                    f"08:{number % 60:02}:{number % 59:02} INFO {noun}: {number} {other}s in {number / 7:.1f} ms",
                    f'{{"id": {number}, "{noun}": "{other}", "total": {number / 100:.2f}}}',
                )
            )
        )
        length += len(lines[-1]) + 1
    return "\n".join(lines)[:size]


@dataclass(slots=True)
class Chat:
    """A session that can grow; `messages` is what the agent sends."""

    seed: int = 1
    model: str = "bench"
    messages: list[dict[str, Any]] = field(default_factory=list)
    turns: int = 0
    _rng: random.Random = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._rng = random.Random(self.seed)
        self.messages += [
            {"role": "system", "content": f"You are a coding agent (run {self.seed}). " + words(self._rng, 400)},
            {"role": "user", "content": GOAL},
        ]

    def call(self) -> dict[str, Any]:
        """Gives the next answer of the model: a word on what it does, and one call."""
        self.turns += 1
        arguments = json.dumps({"path": f"src/{self._rng.choice(_NOUNS)}_{self.turns:03}.py"})
        name = f"call_{self._rng.getrandbits(64):016x}"
        function = {"name": "read_file", "arguments": arguments}
        calls = [{"id": name, "type": "function", "function": function}]
        return {"role": "assistant", "content": words(self._rng, 90), "tool_calls": calls}

    def take(self, answer: dict[str, Any], size: int = TURN_BYTES - 500, closing: str = "") -> None:
        """Appends an answer with one call, and the call's result of about so many bytes."""
        text = output(self._rng, size) + closing
        self.messages += [answer, {"role": "tool", "tool_call_id": answer["tool_calls"][0]["id"], "content": text}]

    def say(self, text: str) -> None:
        """Appends a person's message."""
        self.messages.append({"role": "user", "content": text})

    def grow(self, size: int = TURN_BYTES) -> None:
        """Appends one call with its result; now and then the person says something."""
        self.take(self.call(), max(size - 500, 100))
        if self.turns % 12 == 0:
            self.say(f"No, leave the {self._rng.choice(_NOUNS)} of step {self.turns} alone; " + words(self._rng, 80))

    def body(self, **options: object) -> bytes:
        """Gives the request."""
        request = {"model": self.model, **options, "messages": self.messages, "tools": TOOLS}
        return json.dumps(request, ensure_ascii=False, separators=(",", ":")).encode()


def chat(tokens: int, seed: int = 1) -> Chat:
    """Gives a chat of about so many tokens."""
    made = Chat(seed)
    left = tokens * 4 - len(made.body())
    while left > 300:
        before = len(made.body()) if left < 2 * TURN_BYTES else 0
        made.grow(min(TURN_BYTES, left))
        left -= len(made.body()) - before if before else TURN_BYTES
    return made


if __name__ == "__main__":
    for thousands in (1, 20, 200):
        one = chat(thousands * 1000)
        print(f"{thousands}k tokens: {len(one.body())} bytes, {len(one.messages)} messages")
