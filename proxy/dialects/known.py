"""All dialects by name."""

from __future__ import annotations

from proxy.dialects.base import Dialect
from proxy.dialects.chat import Chat
from proxy.dialects.messages import Messages
from proxy.dialects.responses import Responses


def all_dialects() -> dict[str, Dialect]:
    """Gives one dialect of each name."""
    made: tuple[Dialect, ...] = (Chat(), Responses(), Messages())
    return {dialect.name: dialect for dialect in made}
