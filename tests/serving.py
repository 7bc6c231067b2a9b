"""A whole proxy on loopback in this process: assembled from settings and behind its gate, as the command runs it."""

from __future__ import annotations

import contextlib
import io
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from proxy.assembly import Assembly, assemble, open_upstream
from proxy.exchange import PassThrough
from proxy.server import Gate
from proxy.settings import Settings
from proxy.settings.loading import packaged_folder
from proxy.telemetry import Log
from tests.fake_model import listening


@dataclass(frozen=True, slots=True)
class Serving:
    """Its address, its log so far, its parts, and a client."""

    url: str
    log: io.StringIO
    assembly: Assembly
    client: aiohttp.ClientSession

    async def ask(self, path: str, body: dict[str, Any], headers: dict[str, str]) -> tuple[int, str]:
        """Sends a request and reads the whole answer."""
        async with self.client.post(self.url + path, json=body, headers=headers) as answer:
            return answer.status, await answer.text()

    async def get(self, path: str) -> str:
        """Reads one of the proxy's own doors."""
        async with self.client.get(self.url + path) as answer:
            return await answer.text()


@contextlib.asynccontextmanager
async def serving(folder: Path, upstream_url: str, **settings: Any) -> AsyncIterator[Serving]:
    """Runs a proxy on a data folder before an upstream; at the end all is on disk, and the log complete."""
    usual = {"pins": {"files": [packaged_folder() / "pins.yaml"]}}
    read = Settings(upstream={"url": upstream_url}, data=folder, **usual | settings)
    stream = io.StringIO()
    log, upstream = Log(stream), open_upstream(read)
    assembly = assemble(read, upstream, log)
    gate = Gate(read.server, assembly.models, PassThrough(upstream), assembly.doors, log)
    try:
        async with listening(gate.server()) as url, aiohttp.ClientSession() as client:
            yield Serving(url, stream, assembly, client)
    finally:
        assembly.close()
        for other in assembly.upstreams:
            await other.close()
        await upstream.close()
        log.close()
