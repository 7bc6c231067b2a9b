"""Which upstream a request goes to, by its path or by its model."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Protocol

import msgspec

from proxy.exchange import Call, Incoming, Sink, relay
from proxy.settings.routes import is_path, takes
from proxy.upstream import Headers


class Sender(Protocol):
    """Takes a request to a model and gives the answer as soon as its status is there."""

    async def send(
        self, method: str, path: str, headers: Headers, body: bytes, *, identity: bool = False, own: Headers = ()
    ) -> Incoming:
        """Sends one request. Raises UpstreamUnreachable, UpstreamTimeout, BadRequest."""


class Routing:
    """Senders by the first key that takes a request, a path's or a model's; with a default for all others."""

    def __init__(self, default: Sender, routes: Mapping[str, Sender] | None = None) -> None:
        self._default = default
        self._routes = dict(routes or {})
        self.by_model = any(not is_path(key) for key in self._routes)

    def sender(self, model: str, path: str = "") -> Sender:
        """Gives the sender of a request."""
        return self._routes.get(self.place(model, path), self._default)

    def place(self, model: str, path: str = "") -> str:
        """Gives the key whose route a request takes, "" for the default."""
        return next((key for key in self._routes if takes(key, model, path)), "")


class RoutedPassing:
    """Passes calls that aren't ours to the upstream of their route; a body is only asked for its model."""

    def __init__(self, routing: Routing) -> None:
        self._routing = routing

    async def handle(self, call: Call, sink: Sink) -> None:
        """Sends the call on and the answer back, both as they are. Raises GoalkeeperError."""
        model = model_of(call.body) if self._routing.by_model else ""
        sender = self._routing.sender(model, call.path)
        await relay(await sender.send(call.method, call.path, call.headers, call.body), sink)


class _Named(msgspec.Struct):
    model: str = ""


def model_of(body: bytes) -> str:
    """Gives the model that a body names, "" when it isn't a JSON object that names one."""
    with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError):
        return msgspec.json.decode(body, type=_Named).model if body[:1] == b"{" else ""
    return ""
