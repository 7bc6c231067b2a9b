"""Builders: chat messages as an agent sends them, and the views of them that the core decides on."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from typing import Any

from proxy.clients import Profiles, load_profiles
from proxy.compaction.budget import budget_of
from proxy.compaction.draft import Memory, Policy, Tools
from proxy.compaction.plan import Plan, make_plan
from proxy.compaction.view import View
from proxy.dialects.chat import Chat
from proxy.lineage.engine import Engine
from proxy.lineage.keys import KeyReader
from proxy.lineage.link import Link
from proxy.pins.lifecycle import Edit, fold
from proxy.pins.rules import RuleSet, load_rules
from proxy.pipeline.conversation import spoken
from proxy.settings.loading import packaged_folder
from proxy.tokens import Counter
from proxy.transcript import Call, ClientId, Message, Transcript

Wire = dict[str, Any]

RULES: RuleSet = load_rules([packaged_folder() / "pins.yaml"])
PROFILES: Profiles = load_profiles([packaged_folder() / "clients"])
CHAT = Chat()
SYSTEM: Wire = {"role": "system", "content": "You are a coding agent in /srv/shop."}
GOAL = "Port the billing service to Go, with all of its tests."


def count(text: str) -> int:
    """Counts tokens, cheaply."""
    return len(text) // 4 + 1


TOOLS = Tools(count, CHAT, CHAT.message)


def user(text: str) -> Wire:
    """A message of the user."""
    return {"role": "user", "content": text}


def says(text: str, *calls: Wire) -> Wire:
    """An answer of the model."""
    return {"role": "assistant", "content": text, **({"tool_calls": list(calls)} if calls else {})}


def call(identity: str, name: str = "read_file", **arguments: str) -> Wire:
    """A tool call."""
    return {"id": identity, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


def result(identity: str, text: str) -> Wire:
    """What a tool printed."""
    return {"role": "tool", "tool_call_id": identity, "content": text}


def step(number: int, output: str = "", size: int = 400) -> list[Wire]:
    """One step of work: a call and its result, of about `size` characters."""
    asked = call(f"call_{number}_4f81bc", path=f"src/mod_{number}.py")
    return [
        says(f"Module {number} needs a look because test {number} fails.", asked),
        result(f"call_{number}_4f81bc", output or f"mod_{number}\n" + "row of the table\n" * (size // 17)),
    ]


def steps(first: int, last: int, size: int = 400) -> list[Wire]:
    """Several steps."""
    return [message for number in range(first, last + 1) for message in step(number, size=size)]


def body(*messages: Wire, **fields: Any) -> bytes:
    """A chat request."""
    return json.dumps({"model": "demo", **fields, "messages": list(messages)}, ensure_ascii=False).encode()


def read(*messages: Wire, **fields: Any) -> Transcript:
    """A parsed chat request."""
    return CHAT.parse(body(*messages, **fields))


def parsed(*messages: Wire) -> tuple[Message, ...]:
    """Parsed messages."""
    return read(*messages).messages


class Follower:
    """One session, followed by the real lineage engine, rules and counter, but without a store."""

    def __init__(self, client: str = "ses-1", profile: str = "generic") -> None:
        names = (f"id{number}" for number in itertools.count(1))
        self._reader = KeyReader()
        self._engine = Engine(lambda: next(names), self._reader)
        self._counter = Counter(count)
        self._client = ClientId(client) if client else None
        self._profile = PROFILES.named(profile)
        self.link: Link | None = None

    def view(self, *messages: Wire, edits: Sequence[Edit] = (), tools: Sequence[Wire] = ()) -> View:
        """Gives the view of one request; the model's answer to it is taken when the next one shows it."""
        transcript = read(*messages, **({"tools": list(tools)} if tools else {}))
        request = self._reader.request(
            transcript, self._profile, client=self._client, side=self._profile.side(transcript)
        )
        link = self.link = self._engine.identify(request)
        ledger = fold(spoken(link), RULES, edits)
        tokens = tuple(self._counter.message(message) for message in transcript.messages)
        overhead = count(transcript.tools_raw.decode()) if transcript.tools_raw else 0
        return View(
            transcript,
            link.keys,
            link.chain,
            link.numbers,
            tokens,
            overhead,
            ledger,
            tuple(link.base),
            tuple(link.humans),
        )

    def answered(self, text: str, *calls: Call) -> None:
        """Takes the model's answer to the newest request."""
        assert self.link is not None
        self._engine.answer(self.link, text, calls, True)


def view(*messages: Wire) -> View:
    """The view of a session's first request."""
    return Follower().view(*messages)


def policy(budget: int = 0, *, window: int = 0, **fields: Any) -> Policy:
    """The default policy under a budget."""
    limits = budget_of(asked=budget, window=window, max_output=0, share=0.9, mode=fields.get("mode", "full"))
    known: dict[str, Any] = {
        "mode": "full",
        "budget": limits,
        "target": 0.5,
        "keep_recent": 0.25,
        "history": "all",
        "pin_tokens": limits.pins(None),
        "pins_hard": False,
        "strict": False,
    }
    return Policy(**known | fields)


def plan(seen: View, rules: Policy | None = None, memory: Memory | None = None, **more: Any) -> Plan:
    """The plan for a view."""
    return make_plan(seen, "branch", memory or Memory(), rules or policy(), TOOLS, **more)


def after(made: Plan, memory: Memory | None = None) -> Memory:
    """What the branch remembers after a plan was carried out."""
    before = memory or Memory()
    return Memory(before.insertions + made.fresh, before.refused)


def sent(made: Plan) -> list[Wire]:
    """The forwarded messages."""
    return [json.loads(piece.raw) for piece in made.pieces]


def block(made: Plan) -> str:
    """The newest inserted text."""
    return made.fresh[-1].text
