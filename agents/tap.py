"""The tap between agent and Goalkeeper: numbers each request, keeps its bytes, and what status came back."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import aiohttp
from aiohttp import web
from multidict import CIMultiDict

from agents.loopback import listening
from agents.model import NUMBER

_HOP = ("host", "content-length", "connection", "transfer-encoding", "keep-alive")


@dataclass(slots=True)
class Sent:
    """A request as the agent sent it, and how it was answered."""

    number: int
    method: str
    path: str
    raw: bytes
    status: int = 0
    told: dict[str, str] = field(default_factory=dict)  # what Goalkeeper's own headers said


class Tap:
    """Passes everything on to Goalkeeper and streams the answer back."""

    def __init__(self, upstream: str) -> None:
        self.sent: list[Sent] = []
        self._upstream = upstream
        self._client: aiohttp.ClientSession | None = None

    @contextlib.asynccontextmanager
    async def serve(self) -> AsyncIterator[str]:
        """Listens on a free loopback port and gives the URL."""
        timeout = aiohttp.ClientTimeout(total=120)
        async with (
            aiohttp.ClientSession(auto_decompress=False, timeout=timeout) as self._client,
            listening(self._pass) as url,
        ):
            yield url

    async def _pass(self, request: web.Request) -> web.StreamResponse:
        if self._client is None:
            raise RuntimeError("the tap isn't open")
        raw = await request.read()
        sent = Sent(len(self.sent) + 1, request.method, request.path, raw)
        self.sent.append(sent)
        headers = _kept(request.headers)
        headers[NUMBER] = str(sent.number)
        url = self._upstream + request.raw_path
        async with self._client.request(
            request.method, url, headers=headers, data=raw, allow_redirects=False
        ) as answer:
            sent.status = answer.status
            sent.told = {key.lower(): value for key, value in answer.headers.items() if "goalkeeper" in key.lower()}
            response = web.StreamResponse(status=answer.status, headers=_kept(answer.headers))
            await response.prepare(request)
            async for chunk in answer.content.iter_any():
                await response.write(chunk)
            return response


def _kept(headers: CIMultiDict[str] | object) -> CIMultiDict[str]:
    pairs = headers.items() if hasattr(headers, "items") else ()
    return CIMultiDict((key, value) for key, value in pairs if key.lower() not in _HOP)
