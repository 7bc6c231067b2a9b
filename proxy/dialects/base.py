"""What every dialect of the wire offers to the core."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from proxy.errors import GoalkeeperError
from proxy.transcript import Answer, Call, Message, Transcript

__all__ = ["Answer", "Call", "Dialect"]


class Dialect(Protocol):
    """Reads and writes one wire format; knows nothing of pins or sessions."""

    name: str
    path: str  # where its requests go

    def parse(self, body: bytes) -> Transcript:
        """Reads a request. Raises UnreadableBody."""

    def render(self, transcript: Transcript, messages: Sequence[bytes]) -> bytes:
        """Gives a body with these messages in place of the transcript's own."""

    def user_message(self, text: str) -> bytes:
        """Gives a message of the role user with this text."""

    def question(self, model: str, order: str, text: str, max_tokens: int) -> bytes:
        """Gives a whole request of our own: an order as system text, and the text that it is about."""

    def message(self, raw: bytes) -> Message:
        """Gives the message of these bytes. Raises UnreadableBody."""

    def extend_message(self, raw: bytes, text: str, *, before: bool = False) -> bytes:
        """Gives the message with `text` added at its end (or before its own text), all other keys as they were."""

    def answer(self, body: bytes, *, sse: bool) -> Answer:
        """Reads a reply, whole or cut off; never raises on rubbish."""

    def error(self, error: GoalkeeperError) -> bytes:
        """Gives the JSON body of our own error in the dialect's form."""

    def stream_error(self, error: GoalkeeperError) -> bytes:
        """Gives our own error as bytes of an open stream."""
