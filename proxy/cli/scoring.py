"""How well predictions match labels: recall, precision and F1, by label, language and client, and each error."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256

import msgspec

from proxy.cli.labelled import LABELS, Prediction, Session, Turn

_CORE = {"goal", "goal_change", "correction"}
_DIRECTIVE = {"correction", "constraint", "preference", "decision"}
_SOFT = {"constraint", "preference", "decision", "fact", "question"}  # written inside a goal, they are part of it
KINDS = ("core missed", "binding missed", "wrongly replaced", "wrongly pinned", "replacement missed", "label wrong")


@dataclass(slots=True)
class Tally:
    """Counts of one yes-or-no question."""

    right: int = 0
    false: int = 0
    missed: int = 0

    def add(self, wanted: bool, found: bool) -> None:  # noqa: FBT001 (two answers to compare)
        """Counts one case."""
        self.right += wanted and found
        self.false += found and not wanted
        self.missed += wanted and not found

    @property
    def precision(self) -> float | None:
        """The share of what was found that was wanted, None when nothing was found."""
        found = self.right + self.false
        return self.right / found if found else None

    @property
    def recall(self) -> float | None:
        """The share of what was wanted that was found, None when nothing was wanted."""
        wanted = self.right + self.missed
        return self.right / wanted if wanted else None

    @property
    def f1(self) -> float | None:
        """The harmonic mean of both."""
        whole = 2 * self.right + self.false + self.missed
        return 2 * self.right / whole if whole else None

    @property
    def row(self) -> dict[str, object]:
        """The figures as JSON."""
        rates = {"precision": self.precision, "recall": self.recall, "f1": self.f1}
        rounded: dict[str, object] = {name: None if rate is None else round(rate, 4) for name, rate in rates.items()}
        return rounded | {"right": self.right, "false": self.false, "missed": self.missed}


class Mistake(msgspec.Struct, frozen=True):
    """One turn that went wrong; `kind` is one of KINDS, the worst first."""

    kind: str
    place: str
    session: str
    turn: int
    wanted: tuple[str, ...]
    found: tuple[str, ...]
    rule: str
    text: str

    @property
    def row(self) -> dict[str, object]:
        """The mistake as JSON."""
        return {name: getattr(self, name) for name in Mistake.__struct_fields__}


@dataclass(slots=True)
class Score:
    """All tallies of some sessions."""

    sessions: int = 0
    turns: int = 0
    pins: Tally = field(default_factory=Tally)
    core: Tally = field(default_factory=Tally)
    directive: Tally = field(default_factory=Tally)
    supersedes: Tally = field(default_factory=Tally)
    labels: dict[str, Tally] = field(default_factory=lambda: {label: Tally() for label in LABELS})
    languages: dict[str, Tally] = field(default_factory=dict)
    clients: dict[str, Tally] = field(default_factory=dict)
    mistakes: list[Mistake] = field(default_factory=list)

    @property
    def row(self) -> dict[str, object]:
        """Everything as JSON; the mistakes stand apart."""
        tallies = {name: getattr(self, name).row for name in ("pins", "core", "directive", "supersedes")}
        groups = {
            name: {key: tally.row for key, tally in sorted(getattr(self, name).items())}
            for name in ("labels", "languages", "clients")
        }
        return {"sessions": self.sessions, "turns": self.turns, **tallies, **groups}


def held_out(session: Session, parts: int) -> bool:
    """Tells whether a session belongs to the part that is kept apart; it depends on its id alone."""
    return sha256(session.id.encode()).digest()[0] % parts == 0


def score(sessions: Iterable[Session], predicted: Mapping[tuple[str, int], Prediction]) -> Score:
    """Compares the predictions for these sessions with their labels; a turn without one counts as nothing found."""
    total = Score()
    for session in sessions:
        total.sessions += 1
        for index, turn in enumerate(session.turns):
            if turn.role == "user":
                found = predicted.get((session.id, index)) or Prediction(session.id, index, (), pin=False)
                _count(total, session, turn, found)
                total.mistakes += _mistakes(session, turn, found)
    total.mistakes.sort(key=lambda mistake: KINDS.index(mistake.kind))
    return total


def _count(total: Score, session: Session, turn: Turn, found: Prediction) -> None:
    total.turns += 1
    total.pins.add(turn.pin, found.pin)
    for groups, name in ((total.languages, session.language), (total.clients, session.client)):
        if name:
            groups.setdefault(name, Tally()).add(turn.pin, found.pin)
    if turn.pin and _CORE & turn.labels:
        total.core.add(wanted=True, found=found.pin)
    in_goal = bool({"goal", "goal_change"} & turn.labels)
    for label, tally in total.labels.items():
        if not (in_goal and label in _SOFT and label not in turn.labels):
            tally.add(label in turn.labels, label in found.labels)
    if not in_goal:
        total.directive.add(bool(_DIRECTIVE & turn.labels), bool(_DIRECTIVE & set(found.labels)))
    for index in turn.supersedes | set(found.supersedes):
        total.supersedes.add(index in turn.supersedes, index in found.supersedes)


def _mistakes(session: Session, turn: Turn, found: Prediction) -> Iterator[Mistake]:
    replaced = set(found.supersedes)
    kind = ""
    if turn.pin and not found.pin:
        kind = "core missed" if _CORE & turn.labels else "binding missed"
    elif replaced - turn.supersedes:
        kind = "wrongly replaced"
    elif found.pin and not turn.pin:
        kind = "wrongly pinned"
    elif turn.supersedes - replaced:
        kind = "replacement missed"
    elif not _agree(turn, found):
        kind = "label wrong"
    if kind:
        wanted, labels = (_told(labels) for labels in (turn.labels, found.labels))
        yield Mistake(kind, session.place, session.id, found.turn, wanted, labels, found.rule, turn.content)


def _agree(turn: Turn, found: Prediction) -> bool:
    """Tells whether at least one label is right, or rightly there is none."""
    wanted = turn.labels - {"injected"}
    return bool(wanted & set(found.labels)) or not wanted


def _told(labels: Iterable[str]) -> tuple[str, ...]:
    known = set(labels)
    return tuple(label for label in LABELS if label in known)
