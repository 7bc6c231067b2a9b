"""Small builders: messages, bodies and a talk that keeps its own history, as an agent does."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from proxy.clients import load_profiles
from proxy.lineage import BranchRecord, BranchState, Changes, EmissionRecord, Engine, KeyReader, Link, Request
from proxy.lineage.records import Mark, StoredBranch
from proxy.transcript import ClientId, Message, Part, Transcript, digest_of

PROFILES = load_profiles([Path(__file__).parents[2] / "config" / "clients"])
SYSTEM = "You are a coding agent working in /srv/shop."


@dataclass(frozen=True)
class Ask:
    """A tool call of an answer."""

    name: str
    arguments: str
    id: str


def message(role: str, *parts: Part) -> Message:
    raw = repr((role, parts)).encode()
    return Message(raw, digest_of(raw), role, parts)


def system(text: str = SYSTEM) -> Message:
    return message("system", Part("text", text))


def user(*texts: str) -> Message:
    return message("user", *(Part("text", text) for text in texts))


def says(text: str, *calls: Ask) -> Message:
    parts = [Part("text", text)] if text else []
    return message("assistant", *parts, *(Part("call", call.arguments, call.name, call.id) for call in calls))


def result(call_id: str, text: str) -> Message:
    return message("tool", Part("result", text, call_id=call_id))


def reads(path: str, call_id: str) -> Ask:
    return Ask("read_file", json.dumps({"path": path}), call_id)


def names() -> Iterable[str]:
    return (f"id{number}" for number in itertools.count(1))


@dataclass
class Store:
    """What a store would keep: every record goes through JSON, as on a disk."""

    records: dict[str, bytes] = field(default_factory=dict)
    states: dict[str, bytes] = field(default_factory=dict)
    marks: dict[str, dict[bytes, None]] = field(default_factory=dict)
    hints: dict[bytes, dict[str, None]] = field(default_factory=dict)
    emissions: dict[str, bytes] = field(default_factory=dict)
    paths: dict[str, tuple[Message, ...]] = field(default_factory=dict)

    def write(self, changes: Changes, link: Link | None = None, messages: tuple[Message, ...] = ()) -> None:
        if changes.branch is not None:
            self.records[changes.branch.id] = msgspec.json.encode(changes.branch)
        for state in (changes.state, *changes.states):
            if state is not None:
                self.states[state.id] = msgspec.json.encode(state)
        if changes.state is not None:
            for mark in changes.marks:
                self.marks.setdefault(changes.state.id, {})[msgspec.json.encode(mark)] = None
        for hint in changes.hints:
            self.hints.setdefault(hint.hash, {})[hint.branch] = None
        if changes.emission is not None:
            self.emissions[changes.emission.id] = msgspec.json.encode(changes.emission)
        if link is not None and link.branch is not None and link.relation not in ("side", "summary"):
            self.paths[link.branch] = messages

    def stored(self, name: str) -> StoredBranch:
        emissions = [msgspec.json.decode(data, type=EmissionRecord) for data in self.emissions.values()]
        return StoredBranch(
            msgspec.json.decode(self.records[name], type=BranchRecord),
            msgspec.json.decode(self.states[name], type=BranchState),
            tuple(msgspec.json.decode(mark, type=Mark) for mark in self.marks.get(name, {})),
            tuple(emission for emission in emissions if name in emission.branches),
        )


class Proxy:
    """An engine with a store behind it, as the pipeline drives them."""

    def __init__(self) -> None:
        self._names = iter(names())
        self.store = Store()
        self.restart()

    def restart(self) -> None:
        """Starts again with nothing in memory."""
        self._reader = KeyReader()
        self.engine = Engine(lambda: next(self._names), self._reader)

    def request(
        self,
        messages: Iterable[Message],
        *,
        client: str = "",
        agent: str = "",
        parent: str = "",
        tools: tuple[str, ...] = ("read_file",),
        retry: bool = False,
        product: str = "",
        profile: str = "generic",
        cap: int = 0,
    ) -> Request:
        transcript = Transcript("chat", "m", tuple(messages), tools, b"", False, cap, "", b"", b"")
        reader = PROFILES.named(profile)
        known = ClientId(client, agent, parent) if client else None
        side = reader.side(transcript)
        return self._reader.request(transcript, reader, client=known, product=product, side=side, retry=retry)

    def send(self, messages: Iterable[Message], answer: str = "", *calls: Ask, **more: object) -> Link:
        """Sends a body and, if there is one, takes the model's answer."""
        messages = tuple(messages)
        request = self.request(messages, **more)  # type: ignore[arg-type]
        for value in self.engine.lookups(request):
            for name in self.store.hints.get(value, {}):
                if not self.engine.knows(name):
                    self.engine.restore(
                        self.store.stored(name), self.store.paths[name], PROFILES.named(request.profile)
                    )
        link = self.engine.identify(request)
        self.store.write(link.changes, link, messages)
        if answer or calls:
            self.store.write(self.engine.answer(link, answer, calls, True))
        return link


def base(link: Link) -> list[str]:
    """Gives the words cut off before."""
    return [turn.text for turn in link.base]


def humans(link: Link) -> list[str]:
    """Gives the human words in the body."""
    return [turn.text for turn in link.humans]
