"""Reads sessions as JSONL, one a line, and predicts what the labels of their human turns are.

A line holds {"session_id", "turns": [{"role", "content"}]}, with "language" and "client_style" if known; to be scored,
each turn with the role `user` also holds "labels", "pin", "supersedes" and "pin_span".
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from proxy.clients import Profile, Profiles
from proxy.dialects.stored import read_stored
from proxy.errors import BadRequest
from proxy.pins.rules import RuleSet
from proxy.pins.trace import Step, trace
from proxy.transcript import Human, HumanTurn

ASKED = 400  # characters of the assistant's closing words that a verdict may look at
LABELS = (
    "goal", "goal_change", "correction", "constraint", "preference", "decision", "commitment", "fact", "chatter",
    "complaint", "question", "approval", "injected",
)  # fmt: skip


class Turn(msgspec.Struct, frozen=True):
    """One message of a session; the labels are empty where there are none."""

    role: str
    content: str
    labels: frozenset[str] = frozenset()
    pin: bool = False
    supersedes: frozenset[int] = frozenset()
    span: str = ""  # the part that binds, "" = all of it
    labelled: bool = False


class Session(msgspec.Struct, frozen=True):
    """One session of a file."""

    id: str
    turns: tuple[Turn, ...]
    place: str  # file:line
    language: str = ""
    client: str = ""


class Prediction(msgspec.Struct, frozen=True):
    """What the rules make of one turn with the role `user`."""

    session: str
    turn: int
    labels: tuple[str, ...]
    pin: bool
    supersedes: tuple[int, ...] = ()
    span: str | None = None
    rule: str = ""

    @property
    def row(self) -> dict[str, object]:
        """The prediction as a line of JSON."""
        return {
            "session_id": self.session,
            "turn_index": self.turn,
            "labels": list(self.labels),
            "pin": self.pin,
            "supersedes": list(self.supersedes),
            "pin_span": self.span,
        }


def json_lines(path: Path) -> Iterator[tuple[str, Any]]:
    """Yields the place and the value of each line that isn't blank. Raises BadRequest with file and line."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadRequest(f"{path}: can't be read: {getattr(error, 'strerror', None) or error}") from None
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            yield f"{path}:{number}", json.loads(line)
        except ValueError as error:
            raise BadRequest(f"{path}:{number}: isn't JSON: {error}; each line holds one whole value") from None


def read_sessions(path: Path, *, labelled: bool) -> tuple[Session, ...]:
    """Reads all sessions of a file. Raises BadRequest with file, line and key."""
    sessions = tuple(_session(place, value, labelled=labelled) for place, value in json_lines(path))
    if not sessions:
        raise BadRequest(f"{path}: holds no session; each line is one session as JSON")
    seen: dict[str, str] = {}
    for session in sessions:
        if session.id in seen:
            raise BadRequest(f"{session.place}: session_id {session.id!r} stands at {seen[session.id]} already")
        seen[session.id] = session.place
    return sessions


def _session(place: str, value: object, *, labelled: bool) -> Session:
    if not isinstance(value, Mapping) or not isinstance(value.get("session_id"), str):
        raise BadRequest(f"{place}: session_id: a session is an object with a text under this key")
    turns = value.get("turns")
    if not isinstance(turns, list):
        raise BadRequest(f"{place}: turns: must be a list of {{role, content}}")
    told = [_turn(f"{place}: turns[{index}]", turn, labelled=labelled) for index, turn in enumerate(turns)]
    language, client = (str(value.get(key) or "") for key in ("language", "client_style"))
    return Session(value["session_id"], tuple(told), place, language, client)


def _turn(place: str, value: object, *, labelled: bool) -> Turn:
    if not isinstance(value, Mapping):
        raise BadRequest(f"{place}: must be an object with role and content")
    role, content = value.get("role"), value.get("content")
    if not isinstance(role, str) or not isinstance(content, str):
        raise BadRequest(f"{place}: role and content must be texts")
    if role != "user" or "labels" not in value:
        if labelled and role == "user":
            raise BadRequest(f"{place}: labels: is missing; a scored turn holds labels, pin and supersedes")
        return Turn(role, content)
    labels, pin = value["labels"], value.get("pin")
    supersedes, span = value.get("supersedes") or [], value.get("pin_span") or ""
    if not isinstance(labels, list) or not set(labels) <= set(LABELS):
        raise BadRequest(f"{place}: labels: must be a list out of: {', '.join(LABELS)}")
    if not isinstance(pin, bool):
        raise BadRequest(f"{place}: pin: must be true or false")
    if not isinstance(supersedes, list) or not all(isinstance(index, int) for index in supersedes):
        raise BadRequest(f"{place}: supersedes: must be a list of turn numbers")
    return Turn(role, content, frozenset(labels), pin, frozenset(supersedes), str(span), labelled=True)


def predict(session: Session, rules: RuleSet, profiles: Profiles) -> Iterator[Prediction]:
    """Yields a prediction for each turn with the role `user`."""
    profile = profiles.named(session.client)
    said = list(spoken([(turn.role, turn.content) for turn in session.turns], profile))
    steps: dict[int, list[Step]] = {}
    for step in trace([turn for turn, _ in said], rules, client=profile.name, reasons=False):
        steps.setdefault(step.turn.number, []).append(step)
    spans = {(turn.number, turn.text): human for turn, human in said}
    for index, turn in enumerate(session.turns):
        if turn.role == "user":
            yield _prediction(session.id, index, turn.content, steps.get(index, []), spans)


def spoken(messages: Sequence[tuple[str, str]], profile: Profile) -> Iterator[tuple[HumanTurn, Human]]:
    """Yields the human turns among (role, content) pairs, numbered as the messages are, each with its place."""
    asked = ""
    for index, (role, content) in enumerate(messages):
        if role == "assistant":
            asked = content[-ASKED:]
            continue
        raw = json.dumps({"role": role, "content": content}, ensure_ascii=False).encode("utf-8", "replace")
        message = read_stored(raw)
        for human in profile.peel(message):
            key = blake2b(human.text.encode("utf-8", "replace"), digest_size=16).digest()
            yield HumanTurn(key, human.text, index, message.digest, human.via, asked), human


def _prediction(
    session: str, index: int, content: str, steps: Sequence[Step], spans: Mapping[tuple[int, str], Human]
) -> Prediction:
    if not steps:
        return Prediction(session, index, ("injected",), pin=False, rule="client profile")
    humans = [spans[index, step.turn.text] for step in steps]
    start = min(human.start for human in humans)
    end = max(human.start + len(human.text) for human in humans)
    peeled = content[start:end].strip() != content.strip()
    pinned = [step for step in steps if step.verdict.kind is not None]
    labels = dict.fromkeys(label for step in steps for label in _labels(step))
    return Prediction(
        session,
        index,
        (*(["injected"] if peeled else []), *labels),
        bool(pinned),
        tuple(sorted({change.turn for step in steps for change in step.changes if change.replaced} - {index})),
        content[start:end] if peeled and pinned else None,
        (pinned or steps)[0].verdict.rule,
    )


def _labels(step: Step) -> Iterator[str]:
    """What decided, and what it is when that is another name; a plain step has no label."""
    names = (*step.verdict.labels[:1], step.verdict.kind or "")
    yield from (name for name in names if name in LABELS)
