"""The plain proxy that Goalkeeper is compared with: aiohttp on both sides, bytes to and fro, nothing else.

Run: python -m benchmarks.passthrough UPSTREAM_URL
"""

from __future__ import annotations

import asyncio
import sys

import aiohttp
from aiohttp import web

from benchmarks.processes import announce, run_loop

_OWN = {"host", "content-length", "transfer-encoding", "connection", "accept-encoding"}


def _kept(headers: aiohttp.typedefs.LooseHeaders) -> list[tuple[str, str]]:
    return [(name, value) for name, value in headers.items() if name.lower() not in _OWN]


async def _main(upstream: str) -> None:
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0), auto_decompress=False, timeout=aiohttp.ClientTimeout(total=None)
    )

    async def forward(request: web.BaseRequest) -> web.StreamResponse:
        body = await request.read()
        async with session.post(upstream + request.path_qs, data=body, headers=_kept(request.headers)) as reply:
            if "Content-Length" in reply.headers:
                return web.Response(status=reply.status, headers=_kept(reply.headers), body=await reply.read())
            response = web.StreamResponse(status=reply.status, headers=_kept(reply.headers))
            await response.prepare(request)
            async for chunk in reply.content.iter_any():
                await response.write(chunk)
            await response.write_eof()
            return response

    app = web.Application(client_max_size=64 << 20)
    app.router.add_post("/{path:.*}", forward)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    announce(runner.addresses[0][1])
    await asyncio.Event().wait()


if __name__ == "__main__":
    run_loop(_main(sys.argv[1].rstrip("/")))
