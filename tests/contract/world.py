"""The real pipeline with a real store, between an agent and a model on loopback that does as it is told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from proxy.assembly import build_pipeline
from proxy.dialects.known import all_dialects
from proxy.errors import ClientGone, GoalkeeperError
from proxy.exchange import Call, Exchange
from proxy.store.replay import Problem, Replay, verify
from proxy.store.rows import Batch
from proxy.store.schema import attach
from proxy.tokens import Counter
from proxy.upstream import Headers
from tests.builders import PROFILES, count
from tests.contract import wire
from tests.fake_model import SSE, FakeModel, Reply, Seen, chat_reply, event
from tests.running import Running


def size_of(body: bytes) -> int:
    """Gives the tokens of a body as the model counts them: all texts, calls and tools, four more for each message."""
    read = json.loads(body)
    total = count(json.dumps(read["tools"])) if "tools" in read else 0
    for message in read["messages"]:
        calls = [call["function"] for call in message.get("tool_calls", [])]
        total += 4 + (count(wire.text(message)) if wire.text(message) or message["role"] == "tool" else 0)
        total += sum(count(call["arguments"]) + count(call["name"]) + 4 for call in calls)
    return total


@dataclass
class Sink:
    """The client's side: keeps what arrives, and may leave after so many pieces."""

    leaves_after: int = -1
    opened: bool = False
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    data: bytes = b""

    async def open(self, status: int, headers: Headers) -> None:
        self.opened, self.status = True, status
        self.headers = {name.lower(): value for name, value in headers}

    async def write(self, data: bytes) -> None:
        if self.leaves_after == 0:
            raise ClientGone("the client left")
        self.leaves_after -= 1
        self.data += data

    async def close(self) -> None:
        """Has nothing to end."""

    def abort(self) -> None:
        """Has nothing to break."""


@dataclass(frozen=True)
class Done:
    """One exchange as all sides saw it."""

    body: bytes  # what the client sent
    bodies: tuple[bytes, ...]  # what the model got for it, retries included
    reply: bytes  # the last bytes that the model answered with
    sink: Sink
    receipt: dict[str, Any]

    @property
    def forwarded(self) -> bytes:
        """The body that the model answered."""
        return self.bodies[-1]

    @property
    def flags(self) -> set[str]:
        """The receipt's flags."""
        return set(self.receipt["flags"])


class World:
    """Everything around one data folder; `restart` starts the proxy anew on it."""

    def __init__(self, folder: Path, *, factor: float = 1, **settings: Any) -> None:
        self.folder = folder
        self.factor = factor  # the model's tokens for one of ours
        self.reports = True  # whether the model tells its usage
        self.refusals = 0  # rewritten bodies that the model will refuse
        self.window = 0  # longest body that the model takes, 0 = any
        self.summary = "The log shows steady progress on the modules."  # what a summariser gets; "" = an error
        self.arrived: Callable[[bytes], None] = lambda _: None
        self._settings = settings
        self._answer: dict[str, Any] = {}
        self.client_body = b""
        self._bodies: list[bytes] = []
        self._reply = b""
        self._runner = asyncio.Runner()
        self._model = FakeModel(self._replies)
        self._runner.run(self._model.__aenter__())
        self._start()

    # --- the proxy ---------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        self._runner.run(self._started())

    async def _started(self) -> None:
        self.counter = Counter(count)
        self._running = Running.start(self.folder, self._model.url, self.counter, **self._settings)
        self.log, self._store = self._running.log, self._running.parts.store
        self._proxy: Exchange = build_pipeline(self._running.parts)

    def _stop(self) -> None:
        self._runner.run(self._running.close())

    def restart(self) -> None:
        """Ends the proxy and starts it again on the same folder."""
        self._stop()
        self._start()

    def close(self) -> None:
        """Ends everything."""
        self._stop()
        self._runner.run(self._model.__aexit__())
        self._runner.close()

    def send(
        self, body: bytes, headers: tuple[tuple[str, str], ...], answer: dict[str, Any], leaves_after: int = -1
    ) -> Done:
        """Sends a request and lets the model answer with this message."""
        self._answer, self.client_body, self._bodies = answer, body, []
        sink = Sink(leaves_after)
        call = Call("POST", "/v1/chat/completions", headers, body)
        self._runner.run(self._handled(call, sink))
        return Done(body, tuple(self._bodies), self._reply, sink, self._running.newest_receipt())

    async def _handled(self, call: Call, sink: Sink) -> None:
        async with asyncio.timeout(20):
            try:
                await self._proxy.handle(call, sink)
            except ClientGone:
                return
            except GoalkeeperError as error:
                sink.status = error.status

    def archived(self, digests: list[str]) -> dict[str, bytes]:
        """Gives the messages that can be read from disk now, as another process sees it."""
        db = attach(self.folder)
        try:
            tenants = [name for (name,) in db.execute("SELECT DISTINCT tenant FROM messages")]
        finally:
            db.close()
        return {name: raw for tenant in tenants for name, raw in self._store.load_messages(tenant, digests).items()}

    def problems(self) -> tuple[Problem, ...]:
        """Gives what the stored receipts promise and the store doesn't bear out."""
        self._store.submit(Batch()).result()
        db = attach(self.folder)
        try:
            return verify(db, self._store, Replay(self._store, PROFILES, all_dialects())).problems
        finally:
            db.close()

    def files(self) -> bytes:
        """Gives all that lies in the data folder."""
        return b"\n".join(path.read_bytes() for path in sorted(self.folder.rglob("*")) if path.is_file())

    # --- the model ---------------------------------------------------------------------------------------------------

    def _replies(self, seen: Seen) -> Reply:
        if seen.header("x-goalkeeper-internal"):
            return chat_reply(self.summary) if self.summary else Reply(status=500, body=b"{}")
        self._bodies.append(seen.body)
        self.arrived(seen.body)
        reply = self._refusal(seen.body) or _said(self._answer, json.loads(seen.body)["stream"], self._usage(seen.body))
        self._reply = b"".join(reply.chunks) if reply.chunks is not None else reply.body
        return reply

    def _refusal(self, body: bytes) -> Reply | None:
        size = self.size_of(body)
        if self.window and size > self.window:
            words = f"This model's maximum context length is {self.window} tokens, but the messages have {size} tokens."
            error = {"message": words, "type": "invalid_request_error", "code": "context_length_exceeded"}
            return Reply(status=400, body=json.dumps({"error": error}).encode())
        if self.refusals and body != self.client_body:
            self.refusals -= 1
            return Reply(status=400, body=b'{"error":{"message":"messages: unexpected role","code":"invalid_value"}}')
        return None

    def size_of(self, body: bytes) -> int:
        """Gives the tokens of a body in the model's own count."""
        return round(size_of(body) * self.factor)

    def _usage(self, body: bytes) -> dict[str, int] | None:
        return {"prompt_tokens": self.size_of(body), "completion_tokens": 9} if self.reports else None


def _said(message: dict[str, Any], stream: bool, usage: dict[str, int] | None) -> Reply:
    finish = "tool_calls" if "tool_calls" in message else "stop"
    if not stream:
        choice = {"index": 0, "message": message, "finish_reason": finish}
        body: dict[str, Any] = {"id": "c", "object": "chat.completion", "choices": [choice], "x_unknown": [1.50, "é"]}
        return Reply(body=json.dumps(body | ({"usage": usage} if usage else {})).encode())
    words = str(message["content"])
    deltas: list[dict[str, Any]] = [{"content": words[:9]}, {"content": words[9:]}]
    deltas += [{"tool_calls": [{"index": at, **call}]} for at, call in enumerate(message.get("tool_calls", []))]
    chunks = [event({"choices": [{"index": 0, "delta": delta}]}) for delta in deltas]
    chunks.append(event({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}))
    chunks += [event({"choices": [], "usage": usage})] if usage else []
    return Reply(headers=SSE, chunks=(*chunks, b"data: [DONE]\n\n"))
