"""Providers that don't speak OpenAI's protocol, reached through litellm: the only importer of that package.

Its import takes seconds and 200 MB, so it happens in a thread, with the first request that needs it, and no other
request waits for it. It would fetch its price list over the network; the packaged one is used instead.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec

from proxy.errors import BadRequest, UpstreamBroken, UpstreamUnreachable

_CHAT = "/chat/completions"
_JSON = ("Content-Type", "application/json")
_EVENTS = ("Content-Type", "text/event-stream")
_NO_STATUS = 502


class ProviderReply:
    """A provider's answer in the form of chat completions, as `upstream.Reply` gives one."""

    def __init__(self, status: int, headers: Sequence[tuple[str, str]], body: AsyncIterator[bytes]) -> None:
        self.status = status
        self.reason = ""
        self.headers = list(headers)
        self._body = body
        self._read: list[bytes] = []

    def header(self, name: str) -> str:
        """Gives the first value of a header, "" without one; the case of the name doesn't matter."""
        return next((value for key, value in self.headers if key.lower() == name.lower()), "")

    @property
    def sse(self) -> bool:
        """Whether the body is an event stream."""
        return self.header("content-type") == _EVENTS[1]

    async def chunks(self) -> AsyncIterator[bytes]:
        """Gives the body's bytes as they arrive. Raises UpstreamBroken."""
        for chunk in self._read:
            yield chunk
        async for chunk in self._body:
            yield chunk

    async def head(self, limit: int) -> bytes:
        """Gives the first bytes of the body; `chunks` gives them again. Raises UpstreamBroken."""
        async for chunk in self._body:
            self._read.append(chunk)
            if sum(map(len, self._read)) >= limit:
                break
        return b"".join(self._read)

    async def read(self) -> bytes:
        """Gives the whole body. Raises UpstreamBroken."""
        return b"".join([chunk async for chunk in self.chunks()])

    def close(self) -> None:
        """Ends the exchange; litellm closes its own connections."""


class Litellm:
    """Sends chat completions to whatever provider a model's name says, in litellm's way of naming them."""

    def __init__(self, *, model: str | None = None, url: str | None = None) -> None:
        self._model = model
        self._url = url
        self._loading: asyncio.Task[Any] | None = None

    async def send(
        self,
        method: str,
        path: str,
        headers: Sequence[tuple[str, str]],
        body: bytes,
        *,
        identity: bool = False,
        own: Sequence[tuple[str, str]] = (),
    ) -> ProviderReply:
        """Sends one request and gives the answer. Raises BadRequest, UpstreamUnreachable."""
        del method, identity, own
        if not path.partition("?")[0].endswith(_CHAT):
            raise BadRequest("a model behind litellm takes chat completions only")
        litellm = await self._loaded()
        asked = msgspec.json.decode(body)
        asked["model"] = self._model or asked.get("model")
        stream = bool(asked.get("stream"))
        try:
            answer = await litellm.acompletion(**asked, api_key=_key(headers), api_base=self._url, num_retries=0)
        except litellm.exceptions.openai.OpenAIError as error:
            return _refusal(error)
        if stream:
            return ProviderReply(200, [_EVENTS], _events(answer, litellm.exceptions.openai.OpenAIError))
        return ProviderReply(200, [_JSON], _whole(answer.model_dump_json(exclude_none=True).encode()))

    async def _loaded(self) -> Any:  # noqa: ANN401  the package itself
        if self._loading is None:
            self._loading = asyncio.create_task(asyncio.to_thread(_load))
        return await asyncio.shield(self._loading)


def _load() -> Any:  # noqa: ANN401  the package itself
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    try:
        import litellm  # noqa: PLC0415, TID251  the one place for it
    except ImportError as error:
        raise UpstreamUnreachable(f"litellm can't be loaded: {error}") from error
    litellm.drop_params = True  # what a provider doesn't know must not fail the request
    return litellm


def _key(headers: Sequence[tuple[str, str]]) -> str | None:
    """The request's own credential: a bearer token or an x-api-key; without one litellm looks into the environment."""
    given = {name.lower(): value for name, value in headers}
    bearer = given.get("authorization", "")
    return bearer[7:] if bearer[:7].lower() == "bearer " else given.get("x-api-key")


def _refusal(error: Exception) -> ProviderReply:
    status = getattr(error, "status_code", None)
    told = {"message": str(error), "type": type(error).__name__, "param": None, "code": getattr(error, "code", None)}
    body = msgspec.json.encode({"error": told})
    return ProviderReply(status if isinstance(status, int) else _NO_STATUS, [_JSON], _whole(body))


async def _whole(body: bytes) -> AsyncIterator[bytes]:
    yield body


async def _events(chunks: Any, failures: type[Exception]) -> AsyncIterator[bytes]:  # noqa: ANN401  litellm's stream
    try:
        async for chunk in chunks:
            yield b"data: " + chunk.model_dump_json(exclude_none=True).encode() + b"\n\n"
    except failures as error:
        raise UpstreamBroken(f"the provider's answer broke off: {error}") from error
    yield b"data: [DONE]\n\n"
