"""Plans one body with the proxy's own pipeline, without an upstream and without keeping anything."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Sequence
from typing import Any

import msgspec

from proxy.assembly import MODEL_PATHS, Parts, build_pipeline, open_upstream
from proxy.compaction.insertion import Insertion
from proxy.compaction.plan import Plan
from proxy.compaction.rewrite import removed
from proxy.dialects.base import Dialect
from proxy.dialects.jsonbytes import array_items, object_fields
from proxy.dialects.known import all_dialects
from proxy.errors import BadRequest, UnreadableBody
from proxy.exchange import Call
from proxy.pipeline.case import Case, Track
from proxy.pipeline.passage import Passage
from proxy.reloading import read_guides
from proxy.settings import Settings
from proxy.store.aside import Aside
from proxy.telemetry import Counters, Log
from proxy.tokens import Counter
from proxy.transcript import Message

_KEY = b"plan" * 8  # names tenants that nobody keeps
_ONLY_MESSAGES = (b'"tool_use"', b'"tool_result"', b'"thinking"', b'"redacted_thinking"')


class Exact(Counter):
    """Counts what the proxy would only guess while a body is far below its limit."""

    def guess(self, message: Message) -> int:
        """Gives a message's tokens, counted."""
        return self.message(message)


class Asked(msgspec.Struct, frozen=True):
    """What is to be planned."""

    body: bytes
    dialect: Dialect
    path: str
    headers: tuple[tuple[str, str], ...]


def dialect_of(body: bytes, name: str | None, path: str | None) -> tuple[Dialect, str]:
    """Gives the dialect of a body and the path it goes to: as named, else by its keys. Raises BadRequest."""
    known = all_dialects()
    if path and path.partition("?")[0] not in MODEL_PATHS:
        raise BadRequest(f"--path {path}: must be one of {', '.join(MODEL_PATHS)}")
    try:
        found = known[name or (MODEL_PATHS[path.partition("?")[0]] if path else _guessed(body))]
        found.parse(body)
    except UnreadableBody as error:
        raise BadRequest(f"this is no body of a model request: {error}") from error
    return found, path or found.path


def _guessed(body: bytes) -> str:
    fields = object_fields(body)
    if "input" in fields:
        return "responses"
    messages = fields.get("messages", b"")
    blocks = messages.startswith(b"[") and any(_has_blocks(raw) for raw in array_items(messages))
    return "messages" if "system" in fields or blocks else "chat"


def _has_blocks(raw: bytes) -> bool:
    if not any(mark in raw for mark in _ONLY_MESSAGES):
        return False
    content = object_fields(raw).get("content", b"")
    return content.startswith(b"[") and any(
        object_fields(block).get("type") in _ONLY_MESSAGES for block in array_items(content) if block.startswith(b"{")
    )


def planned(settings: Settings, store: Aside, asked: Asked) -> tuple[Passage, dict[str, Any]]:
    """Gives the request as it would go out, and what it consists of. Raises ConfigError."""
    return asyncio.run(_planned(settings, store, asked))


async def _planned(settings: Settings, store: Aside, asked: Asked) -> tuple[Passage, dict[str, Any]]:
    # A model-written summary would have to be asked for: what is planned is the digest that stands without it.
    settings = settings.model_copy(update={"summarizer": settings.summarizer.model_copy(update={"when": "never"})})
    guides, counter, log = read_guides(settings), Exact(), Log(io.StringIO())
    upstream = open_upstream(settings)
    try:
        await asyncio.to_thread(counter.load)
        parts = Parts(
            settings, upstream, store, store.seal, _KEY, guides.rules, guides.profiles, counter, Counters(), log
        )
        pipeline = build_pipeline(parts, asked.dialect)
        passage = await pipeline.decided(Call("POST", asked.path, asked.headers, asked.body))
    finally:
        await upstream.close()
        log.close()
    return passage, {**_frame(passage, asked), **(_parts(passage, passage.case) if passage.case else {})}


def _frame(passage: Passage, asked: Asked) -> dict[str, Any]:
    plan, policy, case = passage.plan, passage.policy, passage.case
    link = case.link if case else None
    return {
        "dialect": asked.dialect.name,
        "client": case.profile.name if case else "",
        "model": case.transcript.model if case else "",
        "session": link.session if link and link.relation != "new" else "",
        "relation": link.relation if link else "",
        "evidence": link.detail if link else "",
        "mode": policy.mode if policy else "",
        "budget": policy.budget.size if policy else 0,
        "tokens_in": plan.tokens_in if plan else 0,
        "tokens_out": plan.tokens_out if plan else 0,
        "rewritten": passage.rewritten,
        "kind": plan.kind if plan else "",
        "flags": list(passage.flags),
        "notes": list(passage.notes),
    }


def _parts(passage: Passage, case: Case) -> dict[str, Any]:
    """What would be pinned and not, restored, digested, elided and kept; tokens are the upstream's."""
    plan, policy, track = passage.plan, passage.policy, case.track
    if plan is None or policy is None or track is None:
        return {}
    ratio, counts = policy.ratio, track.view.tokens
    gone = removed(plan.insertions, track.view)
    messages = [
        {"place": place, "role": message.role, "tokens": round(counts[place] * ratio), "text": _words(message)}
        for place, message in enumerate(case.transcript.messages)
    ]
    restored = {pin for one in plan.fresh if one.reason != "compaction" for pin in one.pins}
    return {
        "pinned": [_pin(pin.id, track, plan) for pin in track.view.ledger.active],
        "history": [{"turn": one.turn, "label": one.label, "text": one.text} for one in track.view.ledger.history],
        "restored": [pin.id for pin in track.view.ledger.active if pin.id in restored],
        "digested": [_insertion(one, ratio, fresh=one in plan.fresh) for one in plan.insertions],
        "elided": [message for message in messages if message["place"] in gone],
        "kept": [message for message in messages if message["place"] not in gone],
        "around": round(track.view.overhead * ratio),
    }


def _pin(name: str, track: Track, plan: Plan) -> dict[str, Any]:
    pin = next(one for one in track.view.ledger.active if one.id == name)
    block = next((one.id for one in plan.insertions if name in one.pins), "")
    presence = plan.presence
    where = f"block {block}" if block else "in place" if name in presence.verbatim else "excerpt"
    if name in presence.missing:
        where = "missing"
    return {"id": name, "kind": pin.kind, "turn": pin.turn, "rule": pin.rule, "where": where, "text": pin.text}


def _insertion(one: Insertion, ratio: float, *, fresh: bool) -> dict[str, Any]:
    return {
        "id": one.id,
        "reason": one.reason,
        "new": fresh,
        "turns": f"{one.first_turn}-{one.last_turn}",
        "tokens": round(one.tokens * ratio),
        "pin_tokens": round(one.pin_tokens * ratio),
        "log_tokens": round(one.log_tokens * ratio),
        "text": one.text,
    }


def _words(message: Message) -> str:
    calls: Sequence[str] = [f"{part.name} {part.text}" for part in message.parts if part.kind == "call"]
    return "\n".join([message.text, *calls] if message.text else calls)


def read_headers(lines: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Gives headers that were written as `Name: value`. Raises BadRequest."""
    pairs = [line.partition(":") for line in lines]
    wrong = [line for line, (name, colon, _) in zip(lines, pairs, strict=True) if not colon or not name.strip()]
    if wrong:
        raise BadRequest(f"--header {wrong[0]!r}: must be like 'User-Agent: codex/1.0'")
    return tuple((name.strip(), value.strip()) for name, _, value in pairs)
