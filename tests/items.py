"""Builders: items of the Responses API as agents send them, and the plans that the core makes for them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from proxy.compaction.draft import Memory, Policy, Tools
from proxy.compaction.plan import Plan, make_plan
from proxy.compaction.view import View
from proxy.dialects.responses import Responses
from proxy.lineage.engine import Engine
from proxy.lineage.keys import KeyReader
from proxy.lineage.link import Link
from proxy.pins.lifecycle import fold
from proxy.pipeline.conversation import spoken
from proxy.tokens import Counter
from proxy.transcript import ClientId, Message, Transcript
from tests.builders import PROFILES, RULES, count, policy

Item = dict[str, Any]

RESPONSES = Responses()
TOOLS = Tools(count, RESPONSES, RESPONSES.message)
GOAL = "Port the billing service to Go, with all of its tests."
RULE = "Never touch the folder legacy."
DEVELOPER: Item = {"type": "message", "role": "developer", "content": "You are an agent."}
TRIGGER: Item = {"type": "compaction_trigger"}


def user(text: str) -> Item:
    """An item of the user."""
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def says(text: str) -> Item:
    """A text of the model."""
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def thought(number: int) -> Item:
    """Encrypted reasoning."""
    return {"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": f"c2VjcmV0{number}" * 9}


def call(number: int, command: str = "") -> Item:
    """A tool call."""
    arguments = json.dumps({"cmd": command or f"go test ./mod_{number}"})
    return {"type": "function_call", "call_id": f"call_{number}_4f81bc", "name": "exec_command", "arguments": arguments}


def output(number: int, text: str = "") -> Item:
    """What the tool of a call printed."""
    rows = text or f"mod_{number}\n" + "row of the table\n" * 24
    return {"type": "function_call_output", "call_id": f"call_{number}_4f81bc", "output": rows}


def steps(first: int, last: int, *, reasoning: bool = False) -> list[Item]:
    """Several steps of work: a call and its output, led by reasoning if asked."""
    found: list[Item] = []
    for number in range(first, last + 1):
        found += [*([thought(number)] if reasoning else []), call(number), output(number)]
    return found


def compaction(number: int = 1) -> Item:
    """What a server compacted, sealed."""
    return {"type": "compaction", "id": f"cmp_{number}", "encrypted_content": f"gAAAA-sealed-{number}-" + "x" * 40}


def environment() -> Item:
    """What an agent says about itself in the role user."""
    return user("# AGENTS.md instructions for /srv/shop\n\nUse tabs.")


def body(*items: Item, **fields: Any) -> bytes:
    """A request."""
    return json.dumps({"model": "demo", **fields, "input": list(items)}, ensure_ascii=False).encode()


def read(*items: Item, **fields: Any) -> Transcript:
    """A parsed request."""
    return RESPONSES.parse(body(*items, **fields))


def parsed(*items: Item) -> tuple[Message, ...]:
    """Parsed items."""
    return read(*items).messages


class Talk:
    """One session, followed by the real lineage engine and rules, but without a store."""

    def __init__(self, client: str = "ses-1") -> None:
        names = (f"id{number}" for number in itertools.count(1))
        self._reader = KeyReader()
        self._engine = Engine(lambda: next(names), self._reader)
        self._counter = Counter(count)
        self._client = ClientId(client) if client else None
        self._profile = PROFILES.named("codex")
        self.link: Link | None = None

    def view(self, *items: Item, **fields: Any) -> View:
        """Gives the view of one request."""
        transcript = read(*items, **fields)
        side = self._profile.side(transcript)
        link = self.link = self._engine.identify(
            self._reader.request(transcript, self._profile, client=self._client, side=side)
        )
        tokens = tuple(self._counter.message(message) for message in transcript.messages)
        ledger = fold(spoken(link), RULES)
        return View(transcript, link.keys, link.chain, link.numbers, tokens, 0, ledger, link.base, link.humans)

    def answered(self, *items: Item) -> None:
        """Takes the model's answer to the newest request."""
        assert self.link is not None
        answer = RESPONSES.answer(json.dumps({"output": list(items), "status": "completed"}).encode(), sse=False)
        parts = [part for item in answer.items for part in item.parts]
        self._engine.answer(self.link, answer.text, answer.calls, True, parts)


def plan(seen: View, rules: Policy | None = None, memory: Memory | None = None) -> Plan:
    """The plan for a view."""
    return make_plan(seen, "branch", memory or Memory(), replace(rules or policy(), dialect="responses"), TOOLS)


def sent(made: Plan) -> list[Item]:
    """The forwarded items."""
    return [json.loads(piece.raw) for piece in made.pieces]


def texts(items: Sequence[Item]) -> list[str]:
    """The words of each item, else its kind."""
    return [RESPONSES.message(json.dumps(item).encode()).text or item["type"] for item in items]
