"""A model of the Messages API that binds its reasoning to what stands before it, and an agent that talks to it.

Written from Anthropic's description of prefix checks: a signature covers system text, tools, all earlier messages and
the blocks before it. A block that no longer matches is refused, or dropped where the request asks for that.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from copy import deepcopy
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

from proxy.assembly import build_pipeline
from proxy.dialects.messages import Messages
from proxy.exchange import Call
from proxy.pipeline.pipeline import Pipeline
from proxy.redaction import Sealer
from proxy.store.queries import Edit, edit_pin
from proxy.store.reads import Reads
from proxy.store.replay import Replay, verify
from proxy.store.schema import attach
from proxy.store.sqlite import Store
from proxy.tokens import Counter
from tests.builders import PROFILES, count
from tests.contract.world import Sink
from tests.fake_model import FakeModel, Reply, Seen
from tests.running import KEY, Running

Wire = dict[str, Any]
GOAL = "Port the billing service to Go, with all of its tests."
COMPACT_BETA = "compact-2026-09-04"
BETA = "thinking-binding-controls-2026-08-01"
SYSTEM = "You are a coding agent."
TOOLS = [{"name": "read_file", "input_schema": {"type": "object"}}]


def signature(body: Wire, before: list[Wire]) -> str:
    """What reasoning behind these messages is signed with."""
    seen = [body.get("system"), body.get("tools"), _plain(before)]
    return sha256(json.dumps(seen, sort_keys=True).encode()).hexdigest()


def _plain(value: Any) -> Any:
    """Without cache marks, and texts as blocks: neither changes what a model reads."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    plain = {key: _plain(item) for key, item in value.items() if key != "cache_control"}
    if isinstance(plain.get("content"), str) and "role" in plain:
        plain["content"] = [{"type": "text", "text": plain["content"]}]
    return plain


def fault(messages: list[Wire]) -> str:
    """What is wrong with the order of roles, calls and results; "" for nothing."""
    waiting: set[str] = set()
    compacted = messages[0]["role"] == "assistant" and messages[0]["content"][0]["type"] == "compaction"
    odd = compacted and messages[1]["role"] == "assistant"  # the first kept turn is the answer to what was summarised
    for place, message in enumerate(messages[compacted:]):
        if message["role"] != ("assistant" if place % 2 != odd else "user"):
            return f"messages.{place}: roles must alternate, the user begins"
        blocks = message["content"] if isinstance(message["content"], list) else []
        answered = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        if set(answered) != waiting or any(block["type"] != "tool_result" for block in blocks[: len(answered)]):
            return f"messages.{place}: tool_use ids need tool_result blocks right behind them"
        waiting = {block["id"] for block in blocks if block["type"] == "tool_use"}
    return ""


def misfit(body: Wire) -> str:
    """What can't stand beside an order to summarise; "" for nothing."""
    if {"context_management", "stop_sequences", "stream"} & body.keys() or "format" in body.get("output_config", {}):
        return "compaction: can't be combined with this"
    if body.get("tool_choice", {}).get("type") in ("any", "tool"):
        return "tool_choice: can't be combined with compaction"
    last = body["messages"][-1]
    opened = last["role"] == "assistant" and any(block["type"] == "tool_use" for block in last["content"])
    return "the last assistant turn ends in a tool call" if opened else ""


def reasoning(messages: list[Wire]) -> list[Wire]:
    """All reasoning blocks."""
    blocks = [block for message in messages if isinstance(message["content"], list) for block in message["content"]]
    return [block for block in blocks if block["type"] == "thinking"]


@dataclass
class SigningModel:
    """Answers each request with reasoning, a sentence and, when `calls` is set, a call."""

    can_drop: bool = True
    calls: bool = True
    dropped: list[str] = field(default_factory=list)  # signatures left out of the newest request
    refusals: int = 0
    questions: list[Wire] = field(default_factory=list)  # what the proxy asked on its own
    summary: str = "Modules were read; the tables hold rows."
    condenses: bool = True  # knows compaction on demand
    orders: list[Wire] = field(default_factory=list)  # requests of the proxy for a block
    told: list[Wire] = field(default_factory=list)  # blocks given out, each with what it stands for under "stands"
    _count: int = 0

    def reply(self, seen: Seen) -> Reply:
        """Checks a request and answers it."""
        body = json.loads(seen.body)
        if seen.header("x-goalkeeper-internal") == "compaction":
            self.orders.append(body)
            return self._condensed(seen, body)
        if seen.header("x-goalkeeper-internal"):
            self.questions.append(body)
            content = [{"type": "text", "text": self.summary}]
            return Reply(body=json.dumps({"content": content, "stop_reason": "end_turn"}).encode())
        if "compaction" in body:
            block = {"type": "compaction", "content": "Some modules were read.", "signature": "c2VhbGVk"}
            told = {"role": "assistant", "content": [block], "stop_reason": "compaction"}
            return Reply(body=json.dumps(told).encode())
        return self._checked(seen, body)

    def _condensed(self, seen: Seen, body: Wire) -> Reply:
        """Summarises on demand as Anthropic describes it; a block in front is summarised with the rest."""
        known = self.condenses and COMPACT_BETA in (seen.header("anthropic-beta") or "")
        wrong = misfit(body) or fault(body["messages"]) if known else "compaction: Extra inputs are not permitted"
        if wrong:
            return self._refused(wrong)
        read: list[Wire] = []
        for message in body["messages"]:
            if (kept := self._kept(body, read, message, drop=False)) is None:
                return self._refused("Invalid `signature` in `thinking` block.")
            read.append(kept)
        name = f"block-{len(self.told) + 1}"
        block = {"type": "compaction", "content": f"{self.summary} ({name})", "signature": name}
        self.told.append({**block, "stands": read})
        usage = {"iterations": [{"type": "compaction", "input_tokens": 900, "output_tokens": 90}]}
        told = {"role": "assistant", "content": [block], "stop_reason": "compaction", "usage": usage}
        return Reply(body=json.dumps(told).encode())

    def _forms(self, read: list[Wire]) -> list[list[Wire]]:
        """What was said, and what it was before each block that stands in front of it took its place."""
        first = read[0]["content"][0] if read and isinstance(read[0]["content"], list) and read[0]["content"] else {}
        known = next((one for one in self.told if one["signature"] == first.get("signature")), None)
        return [read, *(self._forms([*known["stands"], *read[1:]]) if known is not None else ())]

    def _misplaced(self, seen: Seen, messages: list[Wire]) -> str:
        blocks = [
            (place, block)
            for place, message in enumerate(messages)
            for block in (message["content"] if isinstance(message["content"], list) else [])
            if block["type"] == "compaction" and block["signature"].startswith("block-")
        ]
        if not blocks:
            return ""
        if COMPACT_BETA not in (seen.header("anthropic-beta") or ""):
            return "messages.0.content.0: 'compaction' is not one of the expected block types"
        if len(blocks) > 1 or blocks[0][0]:
            return "compaction_block_misplaced"
        known = next((one for one in self.told if one["signature"] == blocks[0][1]["signature"]), {})
        bare = {key: value for key, value in blocks[0][1].items() if key != "cache_control"}
        if bare != {key: value for key, value in known.items() if key != "stands"}:
            return "compaction_content_mismatch"
        same = len(messages) > 1 and known["stands"][-1]["role"] == messages[1]["role"]
        return "the first kept message would be merged" if same else ""

    def _checked(self, seen: Seen, body: Wire) -> Reply:
        binding = body.get("thinking", {}).get("block_binding")
        if binding and not self.can_drop:
            return self._refused("thinking.block_binding: Extra inputs are not permitted")
        if binding and BETA not in (seen.header("anthropic-beta") or ""):
            return self._refused("thinking.block_binding: needs a beta header")
        if wrong := fault(body["messages"]) or self._misplaced(seen, body["messages"]):
            return self._refused(wrong)
        self.dropped = []
        read: list[Wire] = []
        for place, message in enumerate(body["messages"]):
            kept = self._kept(body, read, message, drop=bool(binding))
            if kept is None:
                words = "Invalid `signature` in `thinking` block. The block is bound to a different conversation."
                return self._refused(f"messages.{place}.content.0: {words}")
            read.append(kept)
        return self._answer(body, read)

    def _kept(self, body: Wire, read: list[Wire], message: Wire, *, drop: bool) -> Wire | None:
        if not isinstance(message["content"], list):
            return message
        kept: Wire = {"role": message["role"], "content": []}
        for block in message["content"]:
            if block["type"] == "thinking" and block["signature"] not in self._valid(body, [*read, deepcopy(kept)]):
                if not drop:
                    return None
                self.dropped.append(block["signature"])
                continue
            kept["content"].append(block)
        return kept

    def _valid(self, body: Wire, before: list[Wire]) -> set[str]:
        """A signature binds what stood before it: the turns, or since then the block in their place."""
        return {signature(body, form) for form in self._forms(before)}

    def _refused(self, words: str) -> Reply:
        self.refusals += 1
        error = {"type": "error", "error": {"type": "invalid_request_error", "message": words}}
        return Reply(status=400, body=json.dumps(error).encode())

    def _answer(self, body: Wire, read: list[Wire]) -> Reply:
        self._count += 1
        sealed = signature(body, [*read, {"role": "assistant", "content": []}])
        content: list[Wire] = [{"type": "thinking", "thinking": f"Thought {self._count}.", "signature": sealed}]
        content.append({"type": "text", "text": f"Module {self._count} needs a look because test {self._count} fails."})
        if self.calls:
            made = {"name": "read_file", "input": {"path": f"src/mod_{self._count}.py"}}
            content.append({"type": "tool_use", "id": f"toolu_01Xq7b{self._count:04}Zr", **made})
        usage = {"input_tokens": len(json.dumps(read)) // 4, "output_tokens": 30}
        answer = {"type": "message", "role": "assistant", "content": content, "usage": usage}
        return Reply(body=json.dumps(answer | {"stop_reason": "tool_use" if self.calls else "end_turn"}).encode())


@dataclass
class Agent:
    """A client that keeps its transcript and adds to it only."""

    messages: list[Wire] = field(default_factory=list)
    fields: Wire = field(default_factory=dict)

    def body(self) -> bytes:
        """The next request."""
        own = {"model": "m", "max_tokens": 500, "system": SYSTEM, "tools": TOOLS, "thinking": {"type": "adaptive"}}
        return json.dumps({**own, **self.fields, "messages": self.messages}).encode()

    def say(self, text: str) -> None:
        """Adds what the user says."""
        self.messages.append({"role": "user", "content": [{"type": "text", "text": text}]})

    def take(self, answer: Wire, size: int) -> None:
        """Adds an answer and the results of its calls, each of about `size` characters."""
        self.messages.append({"role": "assistant", "content": answer["content"]})
        calls = [block for block in answer["content"] if block["type"] == "tool_use"]
        if calls:
            text = "row of the table\n" * (size // 17)
            results = [{"type": "tool_result", "tool_use_id": call["id"], "content": text} for call in calls]
            self.messages.append({"role": "user", "content": results})


@dataclass(frozen=True)
class Sent:
    """One exchange: what went out, and what came back."""

    status: int
    forwarded: tuple[bytes, ...]
    headers: dict[str, str]  # of the newest forwarded request
    answer: Wire
    receipt: dict[str, Any]

    @property
    def body(self) -> Wire:
        """The newest forwarded body."""
        found: Wire = json.loads(self.forwarded[-1])
        return found


class Proxy:
    """The real pipeline of Messages with a real store, in front of a model on loopback."""

    def __init__(self, folder: Path, model: SigningModel, **settings: Any) -> None:
        self.model = model
        self.store: Store
        self._folder = folder
        self._settings = settings
        self._fake = FakeModel(model.reply)

    async def __aenter__(self) -> Self:
        await self._fake.__aenter__()
        self._start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._running.close()
        await self._fake.__aexit__()

    def _start(self) -> None:
        self._running = Running.start(self._folder, self._fake.url, Counter(count), **self._settings)
        self.store = self._running.parts.store
        pipeline = build_pipeline(self._running.parts, Messages())
        assert isinstance(pipeline, Pipeline)
        self._pipeline = pipeline

    async def restart(self) -> None:
        """Ends the proxy and starts it again on the same folder."""
        await self._running.close()
        self._start()

    async def settled(self) -> None:
        """Waits until what the proxy asks in the background is answered."""
        await asyncio.gather(*self._pipeline._condenser._tasks)

    async def send(self, agent: Agent) -> Sent:
        """Sends the agent's next request."""
        first = len(self._fake.seen)
        sink = Sink()
        headers = (("x-session-id", "ses-1"), ("anthropic-beta", "some-beta-2026-01-01"))
        await self._pipeline.handle(Call("POST", "/v1/messages", headers, agent.body()), sink)
        newest = self._running.newest_receipt()
        seen = self._fake.seen[first:]
        sent = {name.lower(): value for name, value in seen[-1].headers}
        bodies = tuple(one.body for one in seen if one.header("x-goalkeeper-internal") is None)
        return Sent(sink.status, bodies, sent, json.loads(sink.data), newest)

    def problems(self) -> list[str]:
        """What the stored receipts promise and the store doesn't bear out."""
        db = attach(self._folder)
        try:
            reads = Reads(db, Sealer(KEY))
            report = verify(db, reads, Replay(reads, PROFILES, {"messages": Messages()}))
        finally:
            db.close()
        return [problem.text for problem in report.problems]

    def pin(self, session: str, text: str) -> None:
        """A person pins a text by hand."""
        db = attach(self._folder)
        try:
            edit_pin(db, Sealer(KEY), Edit(session, "add", "", "constraint", text))
        finally:
            db.close()

    async def work(self, agent: Agent, steps: int, size: int = 3_000) -> list[Sent]:
        """Lets the agent do so many steps of one call each."""
        done = []
        for _ in range(steps):
            done.append(await self.send(agent))
            if done[-1].status != 200:
                break
            agent.take(done[-1].answer, size)
        return done


@contextlib.asynccontextmanager
async def proxied(folder: Path, model: SigningModel, **settings: Any) -> AsyncIterator[Proxy]:
    """Runs a proxy in front of this model."""
    async with Proxy(folder, model, **settings) as proxy:
        yield proxy


def begun() -> Agent:
    """An agent that was given its goal."""
    agent = Agent()
    agent.say(GOAL)
    return agent


def words(sent: Sent) -> str:
    """All texts of the role user in the forwarded body."""
    messages = [message for message in sent.body["messages"] if message["role"] == "user"]
    return "\n".join(block.get("text", "") for message in messages for block in message["content"])
