"""What a run has shown: requests, forwarded bodies, stored things. Checks read it and nothing else."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.cases.body import Json, text_of, value_of
from tests.cases.faults import Malformed, Unmet

_STEP = re.compile(r"\.?([^.\[\]]+)|\[(-?\d+)\]")
ARCHIVE_ID = re.compile(r"\barchived?:? <?([0-9A-Za-z]{6,64})\b")
Record = Mapping[str, Any]


@dataclass(slots=True)
class Forward:
    """One request that the fake model got, and what it answered."""

    label: str
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    status: int = 0
    sent: bytes = b""  # the answer's bytes as they went out
    plain: bytes = b""  # the same before its content encoding
    closed_at: float = 0.0  # when the connection was lost before the answer was complete, 0 = it wasn't


@dataclass(slots=True)
class Exchange:
    """One request of the client, and what it got."""

    label: str
    method: str
    path: str
    sent: bytes
    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    fault: str = ""  # why the answer isn't whole
    left_at: float = 0.0  # when the client closed the connection on purpose, 0 = it didn't

    def header(self, name: str) -> str:
        """Gives a response header, "" when it is missing."""
        return next((value for key, value in self.headers.items() if key.lower() == name), "")


@dataclass(frozen=True, slots=True)
class Start:
    """A start of the proxy that a case asks for: whether it was refused, and what it said."""

    refused: bool
    output: str


@dataclass(slots=True)
class Stored:
    """What the documented doors of the proxy tell: facts, pins, receipts, archive, files."""

    facts: Sequence[Record] = ()
    pins: Sequence[Record] = ()
    receipts: Sequence[Record] = ()
    transcript: Sequence[Record] = ()  # {"role", "text", "calls": [{"id", "name", "input"}]}
    archive: Mapping[str, str] = field(default_factory=dict)  # id → original text
    files: Mapping[str, bytes] = field(default_factory=dict)  # of the data folder and the log, by relative path
    strays: Sequence[str] = ()  # files outside the data folder
    faults: Mapping[str, str] = field(default_factory=dict)  # door → why it couldn't be read


@dataclass(slots=True)
class Evidence:
    """All that one run has shown."""

    exchanges: dict[str, Exchange] = field(default_factory=dict)
    forwards: dict[str, list[Forward]] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)  # label of a retry → label of its request
    starts: list[Start] = field(default_factory=list)
    fact_counts: dict[str, tuple[int, int]] = field(default_factory=dict)  # label → facts before and after it
    stored: Stored = field(default_factory=Stored)
    receipt_of: dict[str, Record] = field(default_factory=dict)
    decoys: dict[str, list[Forward]] = field(default_factory=dict)  # host → requests that reached it
    problems: list[str] = field(default_factory=list)  # what the driver couldn't do

    def exchange(self, label: str) -> Exchange:
        """Gives the client's side of a request. Raises Malformed for a label that no request bears."""
        if label not in self.exchanges:
            raise Malformed(f"no request is called {label!r}")
        return self.exchanges[label]

    def upstream(self, label: str) -> list[Forward]:
        """Gives all requests that the fake model got for a label, oldest first."""
        if label in self.aliases:
            return self.forwards.get(self.aliases[label], [])[1:]
        return self.forwards.get(label, [])

    def forward(self, label: str) -> Forward:
        """Gives the first body for a label. Raises Unmet when none came."""
        found = self.upstream(label)
        if not found:
            raise Unmet(f"nothing was forwarded for {label}")
        return found[0]

    def receipt(self, label: str) -> Record:
        """Gives the receipt of a request. Raises Unmet when there is none."""
        self.door("receipts")
        if label not in self.receipt_of:
            self.exchange(label)
            raise Unmet(f"there is no receipt for {label}")
        return self.receipt_of[label]

    def door(self, name: str) -> None:
        """Raises Unmet when a door of the proxy couldn't be read."""
        if name in self.stored.faults:
            raise Unmet(f"{name} can't be read: {self.stored.faults[name]}")

    @property
    def archive_ids(self) -> list[str]:
        """The archive ids that stand in forwarded bodies, each once."""
        texts = (forward.body.decode("utf-8", "replace") for many in self.forwards.values() for forward in many)
        return list(dict.fromkeys(found for text in texts for found in ARCHIVE_ID.findall(text)))

    def bytes_of(self, reference: str) -> bytes:
        """Gives the bytes behind `client:r1`, `forwarded:r1` or `client_stream:r1`; a path gives its value's JSON."""
        kind, label, path = split_reference(reference)
        if path:
            return repr(self.value_of(reference)).encode()
        if kind == "forwarded":
            return self.forward(label).body
        exchange = self.exchange(label)
        return exchange.sent if kind == "client" else exchange.body

    def value_of(self, reference: str) -> Json:
        """Gives the JSON value behind a reference. Raises Unmet when its path leads nowhere."""
        kind, label, path = split_reference(reference)
        value = value_of(self.bytes_of(f"{kind}:{label}"))
        for name, index in _STEP.findall(path):
            try:
                value = value[int(index)] if index else value[name]
            except (KeyError, IndexError, TypeError):
                raise Unmet(f"{reference} leads to nothing") from None
        return value

    def text_of(self, reference: str) -> str:
        """Gives the concatenated string values behind a reference; of a stream the bytes as text."""
        if reference.startswith("client_stream:"):
            return self.bytes_of(reference).decode("utf-8", "replace")
        return text_of(self.value_of(reference))


def split_reference(reference: str) -> tuple[str, str, str]:
    """Splits `forwarded:r1:messages[0]` into kind, label and path. Raises Malformed for another form."""
    kind, _, rest = str(reference).partition(":")
    label, _, path = rest.partition(":")
    if kind not in ("client", "forwarded", "client_stream") or not label:
        raise Malformed(f"{reference!r} is no reference such as forwarded:r1")
    return kind, label, path
