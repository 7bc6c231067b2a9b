"""The body as it leaves: what was decided, in the form that its dialect needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from proxy.compaction.cachemarks import marked
from proxy.compaction.insertion import Insertion
from proxy.compaction.rewrite import Piece
from proxy.compaction.thinking import asking_to_drop, drops
from proxy.transcript import Transcript


class Renderer(Protocol):
    """What this needs of a dialect."""

    def render(self, transcript: Transcript, messages: Sequence[bytes]) -> bytes:
        """Gives a body with these messages in place of the transcript's own."""


class Rewritten(Protocol):
    """A plan, or one that is rebuilt from what was stored."""

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """The messages that go out; none when the client's own bytes do."""

    @property
    def insertions(self) -> tuple[Insertion, ...]:
        """What stands in them."""


def body_of(dialect: Renderer, transcript: Transcript, plan: Rewritten, messages: Sequence[bytes]) -> bytes:
    """Gives the body with these messages; in Messages with a cache mark, and what signed reasoning asks for."""
    if transcript.dialect == "messages" and plan.pieces:
        messages = marked(messages, plan.pieces, plan.insertions, transcript)
    body = dialect.render(transcript, messages)
    return asking_to_drop(body) if drops(plan.insertions) else body
