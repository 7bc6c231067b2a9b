"""The client's side of a run: sends exact bytes, keeps exact bytes, leaves when the case says so."""

from __future__ import annotations

import asyncio

import aiohttp

from tests.cases.evidence import Exchange
from tests.cases.plan import Request
from tests.cases.upstream import FakeModel

ANSWER_SECONDS = 60.0
LEAVE_SECONDS = 10.0


def client_session() -> aiohttp.ClientSession:
    """Opens a client that adds nothing to requests and undoes nothing in answers."""
    return aiohttp.ClientSession(
        auto_decompress=False,
        trust_env=False,
        timeout=aiohttp.ClientTimeout(total=ANSWER_SECONDS),
        skip_auto_headers=("User-Agent", "Accept-Encoding", "Content-Type"),
        connector=aiohttp.TCPConnector(limit=0, force_close=True),
    )


async def exchange(http: aiohttp.ClientSession, root: str, request: Request, model: FakeModel) -> Exchange:
    """Sends one request and takes the whole answer; what goes wrong stands in `fault`."""
    seen = Exchange(request.label, request.method, request.path, request.body)
    model.in_flight.append(request.label)
    try:
        if request.leave:
            await _leave(http, root, request, model, seen)
        else:
            await _receive(http, root, request, seen)
    finally:
        model.in_flight.remove(request.label)
    return seen


async def _receive(
    http: aiohttp.ClientSession, root: str, request: Request, seen: Exchange, events: int | None = None
) -> None:
    """Reads the answer to its end, or until so many events have come."""
    try:
        async with http.request(
            request.method,
            root + request.path,
            headers=request.headers,
            data=request.body or None,
            allow_redirects=False,
        ) as response:
            seen.status = response.status
            seen.headers = response.headers.copy()
            async for chunk in response.content.iter_any():
                seen.body += chunk
                if events is not None and seen.body.count(b"data:") >= events:
                    response.close()
                    return
    except (aiohttp.ClientError, ConnectionError) as error:
        seen.fault = f"{type(error).__name__}: {error}"
    except TimeoutError:
        seen.fault = f"no whole answer within {ANSWER_SECONDS:.0f} s"


async def _leave(http: aiohttp.ClientSession, root: str, request: Request, model: FakeModel, seen: Exchange) -> None:
    """Closes the connection: after some events, or while the model hasn't answered yet."""
    events = model.script.leaves[request.label]
    receiving = asyncio.create_task(_receive(http, root, request, seen, events or None))
    try:
        async with asyncio.timeout(LEAVE_SECONDS):
            if events:
                await asyncio.shield(receiving)
            else:
                await model.arrival(request.label).wait()
    except TimeoutError:
        seen.fault = "the moment to leave never came"
    receiving.cancel()
    await asyncio.wait({receiving})
    seen.left_at = asyncio.get_running_loop().time()
