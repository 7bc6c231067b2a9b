"""One request as the compaction core sees it: messages with their keys, turn numbers and token counts."""

from __future__ import annotations

import msgspec

from proxy.compaction.item_invariants import reasoning, sealed_until
from proxy.pins.model import Ledger
from proxy.transcript import HumanTurn, Key, Message, Transcript


class View(msgspec.Struct, frozen=True):
    """A transcript aligned with its key chain; token counts are our estimates, not yet calibrated."""

    transcript: Transcript
    keys: tuple[Key, ...]
    chain: tuple[bytes, ...]  # chain hash after each key
    numbers: tuple[int, ...]  # turn number of each key
    tokens: tuple[int, ...]  # of each message
    overhead: int  # tokens of tools and frame, which no cut can save
    ledger: Ledger
    base: tuple[HumanTurn, ...]  # human words that were cut off earlier and stand in this body no longer
    humans: tuple[HumanTurn, ...]  # human words in this body, in order

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages in wire order."""
        return self.transcript.messages

    def place(self, key: int) -> int:
        """Gives the index of the message that carries key number `key`, or of the reasoning that led to it.

        Behind the last key: the number of messages.
        """
        if key >= len(self.keys):
            return len(self.messages)
        place = self.keys[key].message
        while place and self.messages[place].role == "assistant" and reasoning(self.messages[place - 1]):
            place -= 1
        return place

    @property
    def sealed(self) -> int:
        """How many keys stand up to the server's newest compaction item, 0 without one."""
        until = sealed_until(self.messages)
        if not until:
            return 0
        return next((place for place, key in enumerate(self.keys) if key.message >= until), len(self.keys))

    def opens_message(self, key: int) -> bool:
        """Whether a key is the first of its message, so that a cut before it splits no message."""
        return key in (0, len(self.keys)) or self.keys[key - 1].message < self.keys[key].message

    def anchor(self, end: int) -> str:
        """Gives the chain hash (hex) of the first `end` keys, "" for none."""
        return self.chain[end - 1].hex() if end else ""

    def total(self) -> int:
        """Tokens of the whole body."""
        return self.overhead + sum(self.tokens)
