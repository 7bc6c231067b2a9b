"""Which upstream a model's requests go to."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Protocol

from proxy.exchange import Incoming
from proxy.upstream import Headers


class Sender(Protocol):
    """Takes a request to a model and gives the answer as soon as its status is there."""

    async def send(
        self, method: str, path: str, headers: Headers, body: bytes, *, identity: bool = False, own: Headers = ()
    ) -> Incoming:
        """Sends one request. Raises UpstreamUnreachable, UpstreamTimeout, BadRequest."""


class Routing:
    """Senders by the first pattern that a model's name matches, with a default for all others."""

    def __init__(self, default: Sender, routes: Mapping[str, Sender] | None = None) -> None:
        self._default = default
        self._routes = dict(routes or {})

    def sender(self, model: str) -> Sender:
        """Gives the sender of a model."""
        return next((to for pattern, to in self._routes.items() if fnmatchcase(model, pattern)), self._default)

    def place(self, model: str) -> str:
        """Gives the pattern whose route a model takes, "" for the default: what is learnt about it is kept under it."""
        return next((pattern for pattern in self._routes if fnmatchcase(model, pattern)), "")
