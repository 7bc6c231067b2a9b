"""What is written down of a model's proposals: candidates among the facts, and a receipt of their own."""

from __future__ import annotations

from collections import Counter

import msgspec

from proxy.compaction.receipt import Receipt
from proxy.exchange import Call
from proxy.facts import Fact
from proxy.pins.lifecycle import pin_id
from proxy.pins.proposals import RULE, Proposal
from proxy.pipeline.case import Case
from proxy.store.ids import new_ulid
from proxy.store.rows import now
from proxy.transcript import Answer, HumanTurn


class Question(msgspec.Struct, frozen=True):
    """One turn that is asked about."""

    call: Call
    case: Case
    turn: HumanTurn
    words: str  # the person's own, secret values masked
    asked: str


class Asked(msgspec.Struct, frozen=True):
    """How it went: in one word, with the model's answer, what is believed of it, and what was dropped."""

    word: str
    status: int = 0
    answer: Answer = msgspec.field(default_factory=Answer)
    kept: tuple[Proposal, ...] = ()
    dropped: Counter[str] = msgspec.field(default_factory=Counter)


def receipt_of(question: Question, asked: Asked, model: str, usd: float | None) -> Receipt:
    """Gives the receipt of one question; `usd` is its price, None when that isn't known."""
    case, answer = question.case, asked.answer
    notes = [f"asked about turn {question.turn.number}: {asked.word}, {len(asked.kept)} proposals kept"]
    notes += [f"{count} dropped: {reason}" for reason, count in asked.dropped.items()]
    notes += [] if usd is not None else ["the model's price is not known"]
    return Receipt(
        id=new_ulid(),
        at=now(),
        session=case.link.session,
        client=case.profile.name,
        model=model,
        relation=RULE,
        match_detail=f"about {case.receipt}",
        notes=tuple(notes),
        prompt_tokens=answer.prompt_tokens,
        cached_tokens=answer.cached_tokens,
        completion_tokens=answer.completion_tokens,
        cost_usd=round(usd or 0.0, 6),
        status=asked.status,
        attempts=1,
    )


def candidate(question: Question, one: Proposal, receipt: Receipt) -> Fact:
    """Gives the fact that a proposal makes: the person's words, and a model's opinion that they bind."""
    case, turn = question.case, question.turn
    source = {
        "session": case.link.session,
        "branch": case.link.line,
        "message": turn.message,
        "client": case.profile.name,
        "proposed_by": receipt.model,
        "confidence": f"{one.confidence:g}",
        "receipt": receipt.id,
    }
    return Fact(
        pin=pin_id(turn.key, one.span, 0),
        kind=one.kind,
        status="candidate",
        scope="session",
        text=one.quote,
        quote=one.quote,
        turn=turn.number,
        rule=RULE,
        project=case.project,
        session=case.link.session,
        branch=case.link.line,
        observed_at=receipt.at,
        source=source,
        span=one.span,
        asked=turn.asked,
        evidence="model",
    )
