"""What the stand-in really got, measured: nothing here asks Goalkeeper for its own opinion."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from proxy.demo import script
from proxy.demo.agent import Exchange
from proxy.demo.model import StandIn, body_tokens
from proxy.dialects.chat import Chat
from proxy.tokens import Counter
from proxy.transcript import Transcript

_MARK = "[goalkeeper"
_LOG = f"{_MARK} 2/2"
_BINDING = ("goal", "correction")


@dataclass(frozen=True, slots=True)
class Survival:
    """One of the user's sentences: in how many of the `due` requests after it was said it stood, word for word."""

    kind: str
    text: str
    due: int
    naive: int  # had only the newest tokens been kept
    agent: int  # in the agent's own bodies, before the proxy
    here: int  # in what the model really got
    first_lost: int  # number of the first request in which the naive cut misses it, 0 = never


@dataclass(frozen=True, slots=True)
class Outcome:
    """All figures of one run; tokens are counted the same way on both sides."""

    budget: int
    requests: int
    tool_turns: int
    compactions: int
    restores: int
    summary_calls: int
    words: tuple[Survival, ...]
    tokens_agent: int
    tokens_here: int
    tokens_again: int  # of these, the part that repeats the request before, byte for byte
    largest_agent: int
    largest_here: int
    prefix_breaks: int
    streams: int
    streams_in_time: int
    blocks: str  # all that Goalkeeper's text says in the last request

    @property
    def kept(self) -> bool:
        """Whether the goal and every correction stood in each request of the conversation after they were said."""
        bound = [one for one in self.words if one.kind in _BINDING]
        return bool(bound) and all(one.here == one.due > 0 for one in bound)


def measure(exchanges: Sequence[Exchange], stand_in: StandIn, counter: Counter, budget: int) -> Outcome:
    """Compares what the agent sent with what the stand-in got."""
    sent = [Chat().parse(one.sent) for one in exchanges]
    got = [Chat().parse(body) for body in stand_in.bodies]
    tokens = [body_tokens(body, counter) for body in got]
    agent = [body_tokens(body, counter) for body in sent]
    common = [_common(old, new) for old, new in pairwise(got)]
    return Outcome(
        budget=budget,
        requests=len(got),
        tool_turns=script.TOOL_TURNS,
        compactions=sum(one.compaction in ("compaction", "retry") for one in exchanges),
        restores=sum(one.compaction == "restore" for one in exchanges),
        summary_calls=len(stand_in.summary_calls),
        words=tuple(_survivals(exchanges, sent, got, counter, budget)),
        tokens_agent=sum(agent),
        tokens_here=sum(tokens),
        tokens_again=sum(
            sum(counter.message(message) for message in body.messages[:same])
            for body, same in zip(got[1:], common, strict=True)
        ),
        largest_agent=max(agent, default=0),
        largest_here=max(tokens, default=0),
        prefix_breaks=sum(same < len(old.messages) for old, same in zip(got, common, strict=False)),
        streams=stand_in.streams,
        streams_in_time=stand_in.streams_in_time,
        blocks=_blocks(got[-1]) if got else "",
    )


def _survivals(
    exchanges: Sequence[Exchange], sent: Sequence[Transcript], got: Sequence[Transcript], counter: Counter, budget: int
) -> Iterable[Survival]:
    naive = [_texts(_newest(one.log, counter, budget)) for one in exchanges]
    logs = [_texts(one.log) for one in exchanges]
    agent = [_user_texts(body) for body in sent]
    here = [_user_texts(body) for body in got]
    for words in script.STORY:
        if not words.kind:
            continue
        due = [number for number, texts in enumerate(logs) if words.text in texts]
        stood = [number for number in due if words.text in naive[number]]
        yield Survival(
            kind=words.kind,
            text=words.text,
            due=len(due),
            naive=len(stood),
            agent=sum(words.text in agent[number] for number in due),
            here=sum(number < len(here) and _holds(here[number], words.text) for number in due),
            first_lost=next((number + 1 for number in due if number not in stood), 0),
        )


def _holds(texts: Sequence[str], words: str) -> bool:
    """Whether the words stand as the user's own: as a whole message, or in the first part of a block of ours."""
    return any(text == words or (text.startswith(_MARK) and words in text.partition(_LOG)[0]) for text in texts)


def _newest(log: Sequence[dict[str, Any]], counter: Counter, budget: int) -> list[dict[str, Any]]:
    """The naive cut: system text, and as many of the newest messages as fit."""
    room = budget - counter.once(json.dumps(script.TOOLS)) - _size(log[0], counter)
    kept: list[dict[str, Any]] = []
    for message in reversed(log[1:]):
        room -= _size(message, counter)
        if room < 0:
            break
        kept.append(message)
    return kept


def _size(message: dict[str, Any], counter: Counter) -> int:
    return counter.message(Chat().message(json.dumps(message).encode()))


def _texts(messages: Iterable[dict[str, Any]]) -> list[str]:
    return [message["content"] for message in messages if message["role"] == "user"]


def _user_texts(body: Transcript) -> list[str]:
    return [message.text for message in body.messages if message.role == "user"]


def _common(old: Transcript, new: Transcript) -> int:
    """Gives how many messages two bodies have in common from the start, byte for byte."""
    pairs = zip(old.messages, new.messages, strict=False)
    same = next((place for place, (one, other) in enumerate(pairs) if one.raw != other.raw), None)
    return min(len(old.messages), len(new.messages)) if same is None else same


def _blocks(body: Transcript) -> str:
    return "\n\n".join(text for text in _user_texts(body) if text.startswith(_MARK))
