"""What happened to one request, written down so that it can be re-checked later."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from proxy.transcript import digest_of


class ToolCall(msgspec.Struct, frozen=True):
    """One tool call that this request or its answer brought for the first time."""

    id: str
    name: str
    arguments: str  # digest of the canonical arguments, 16 hex digits
    outcome: str = ""  # "", "ok", "exit 3", "error: first line (bounded)"
    origin: str = "request"  # request | answer


class Receipt(msgspec.Struct, frozen=True, omit_defaults=True):
    """One request: who it was linked to, what was changed and why, what it cost."""

    id: str  # ULID
    at: str  # ISO 8601, UTC
    session: str = ""
    branch: str = ""  # the same through compactions
    epoch: int = 0  # how often history was cut away in the branch before this request
    track: str = ""  # id under which the epoch's path and insertions are stored
    client: str = ""  # profile name
    model: str = ""
    dialect: str = ""
    path: str = ""
    # new, extends, resend, rewound, edited, forked, compacted, derived, ambiguous, subagent, side, summary;
    # classifier: a request of our own about the turns of another one
    relation: str = ""
    session_match: str = ""  # header, client_id, chain, tail_overlap, summary_text, new
    match_detail: str = ""
    candidates: tuple[str, ...] = ()
    mode: str = ""
    flags: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()  # reasons of flags, for people
    messages: int = 0  # messages in the client's body
    insertions: tuple[str, ...] = ()  # ids that stood in the forwarded body, in order
    compaction: str = ""  # "", "compaction" (a cut was made for this request), "restore", "retry"
    pins_present: int = 0
    pins_active: int = 0
    pins: tuple[str, ...] = ()  # ids of the active pins
    tokens_in: int = 0  # estimate of the client's body, calibrated
    tokens_out: int = 0  # estimate of the forwarded body, calibrated
    budget: int = 0
    prompt_tokens: int = 0  # reported by the upstream, cache included
    cached_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float = 0.0  # of a request of our own (relation classifier), 0 where the price isn't known
    status: int = 0
    attempts: int = 0
    changed: bool = False  # whether the forwarded bytes differ from the client's
    forwarded: str = ""  # digest over the forwarded messages
    sent: str = ""  # digest of the very bytes of the forwarded body (blake2b, 32 hex digits), "" for side calls
    frame: str = ""  # digest of what is kept of the bytes around its messages, "" when nothing is
    gap: str = ""  # what stood between its messages; "whole": the frame is the body
    summarizer_model: str = ""
    summarizer_tokens: int = 0
    calls: tuple[ToolCall, ...] = ()
    partial: bool = False  # the answer was cut off

    @property
    def words(self) -> str:
        """All in it that isn't made here, a line each: what client and model say."""
        called = (word for call in self.calls for word in (call.id, call.name, call.outcome))
        told = (self.client, self.model, self.path, self.match_detail, self.summarizer_model, *self.notes)
        return "\n".join((*told, *self.candidates, *called))


def body_digest(digests: Iterable[str]) -> str:
    """Gives the digest over the content ids of a forwarded body's messages: 32 hex digits."""
    return digest_of("".join(digests).encode())
