"""What one turn of a growing session costs in Goalkeeper itself: the pipeline in this process, before a null upstream.

Figures are milliseconds of CPU time a request: `own` on the event loop's thread (what other requests have to wait for),
`all` on all threads (the writer of the store and the log included); `read` is what the dialect's reading of the body
alone costs, which has to grow with the body; `rest` = own - read is what must not.

Run: python -m benchmarks.turn_cpu [--sizes 50,100,200,400] [--turns 60] [--profile]
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import gc
import io
import json
import pstats
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, cast

from benchmarks.gen import Chat, chat
from benchmarks.upstream import completion
from proxy.assembly import Parts, build_pipeline
from proxy.clients import load_profiles
from proxy.dialects.chat import Chat as ChatDialect
from proxy.exchange import Call, Exchange
from proxy.pins.rules import load_rules
from proxy.redaction import Sealer
from proxy.settings import packaged_folder
from proxy.settings.loading import load_settings
from proxy.store.sqlite import Store
from proxy.telemetry import Counters, Log
from proxy.tokens import Counter
from proxy.upstream import Headers, Upstream

_WARM = 5


class NullReply:
    """An answer that is there already."""

    status, reason, sse = 200, "OK", False
    headers = (("Content-Type", "application/json"),)

    def __init__(self, body: bytes) -> None:
        self._body = body

    def header(self, name: str) -> str:
        """Gives a header's value."""
        return "application/json" if name == "content-type" else ""

    async def chunks(self) -> AsyncIterator[bytes]:
        """Gives the body in one piece."""
        yield self._body

    def close(self) -> None:
        """Needs nothing."""


class NullUpstream:
    """A model that costs nothing; it answers with the message it was given before."""

    url = "http://127.0.0.1:1"

    def __init__(self) -> None:
        self.answer = b""
        self.received = b""

    async def send(self, *call: object, **_options: object) -> NullReply:
        """Takes a body and answers at once."""
        self.received = cast("bytes", call[3])
        return NullReply(self.answer)


@dataclass(slots=True)
class NullSink:
    """A client that reads nothing; keeps the headers."""

    opened: bool = False
    headers: dict[str, str] = field(default_factory=dict)

    async def open(self, _status: int, headers: Headers) -> None:
        """Takes the headers."""
        self.opened, self.headers = True, dict(headers)

    async def write(self, data: bytes) -> None:
        """Takes bytes."""

    async def close(self) -> None:
        """Takes the end."""

    def abort(self) -> None:
        """Takes a bad end."""


@contextmanager
def pipeline(upstream: NullUpstream) -> Iterator[Exchange]:
    """Builds a pipeline as the server does, on a data folder that goes away again."""
    settings, log = load_settings([], {}, {}), Log(io.StringIO())
    with tempfile.TemporaryDirectory(prefix="goalkeeper-bench-") as folder:
        key = bytes(32)
        seal = Sealer(key)
        store = Store.open(Path(folder), seal)
        rules = load_rules(settings.pins.files, settings.pins.rules, marker=settings.pins.marker)
        profiles = load_profiles([packaged_folder() / "clients"])
        counter = Counter()
        counter.load()
        real = cast("Upstream", upstream)
        yield build_pipeline(Parts(settings, real, store, seal, key, rules, profiles, counter, Counters(), log))
        store.close()
        log.close()


async def turn(
    exchange: Exchange,
    upstream: NullUpstream,
    talk: Chat,
    headers: dict[str, str],
    profile: cProfile.Profile | None = None,
) -> tuple[float, float, bytes]:
    """Sends the chat as it stands and lets it grow by the answer; gives own and all CPU seconds, and the body."""
    answer = talk.call()
    body = talk.body()
    upstream.answer = completion(answer, len(body) // 3)
    lines = {"user-agent": "bench/1", "authorization": "Bearer sk-bench", "content-type": "application/json", **headers}
    call = Call("POST", "/v1/chat/completions", tuple(lines.items()), body)
    sink = NullSink()
    own, everything = time.thread_time(), time.process_time()
    if profile:
        profile.enable()
    await exchange.handle(call, sink)
    if profile:
        profile.disable()
    own = time.thread_time() - own
    await asyncio.sleep(0.01)  # the writer's part
    everything = time.process_time() - everything
    present, _, active = sink.headers["x-goalkeeper-pins"].partition("/")
    assert present == active, sink.headers
    talk.take(answer)
    return own, everything, body


def reading(bodies: list[bytes]) -> float:
    """Gives the median CPU seconds of reading each body, after the one before it."""
    dialect, times = ChatDialect(), []
    for body in bodies:
        begun = time.thread_time()
        dialect.parse(body)
        times.append(time.thread_time() - begun)
    return median(times[1:])


async def measure(tokens: int, turns: int, headers: dict[str, str], profile: cProfile.Profile | None) -> dict[str, Any]:
    """Measures the turns of one session from so many tokens on."""
    upstream, talk = NullUpstream(), chat(tokens)
    with pipeline(upstream) as exchange:
        gc.freeze()  # as the server does when it starts to listen
        for _ in range(_WARM):
            await turn(exchange, upstream, talk, headers)
        rows = [await turn(exchange, upstream, talk, headers, profile) for _ in range(turns)]
        gc.unfreeze()
    own = sorted(row[0] * 1e3 for row in rows)
    read = reading([row[2] for row in rows[-12:]]) * 1e3
    return {
        "tokens": tokens,
        "bytes": len(rows[-1][2]),
        "messages": len(talk.messages),
        "forwarded_bytes": len(upstream.received),
        "own_ms_median": round(median(own), 3),
        "own_ms_p95": round(own[int(len(own) * 0.95)], 3),
        "own_ms_min": round(own[0], 3),
        "all_ms_median": round(median(row[1] for row in rows) * 1e3, 3),
        "read_ms_median": round(read, 3),
        "rest_ms_median": round(median(own) - read, 3),
    }


def main() -> dict[str, Any]:
    """Measures all sizes, below any budget and with compaction active, and prints JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="50,100,200,400", help="thousand tokens of 4 bytes")
    parser.add_argument("--turns", type=int, default=60)
    parser.add_argument("--budget", type=int, default=100_000, help="of the run with compaction active")
    parser.add_argument("--profile", action="store_true", help="show where the time of the largest size goes")
    given = parser.parse_args()
    sizes = [int(size) * 1000 for size in given.sizes.split(",")]
    found = [asyncio.run(measure(size, given.turns, {}, None)) for size in sizes]
    budget = {"x-goalkeeper-budget": str(given.budget)}
    active = [asyncio.run(measure(size, given.turns, budget, None)) for size in sizes if size > given.budget]
    figures = {"own bytes go out": found, f"compacted to {given.budget}": active}
    print(json.dumps(figures, indent=1))
    if given.profile:
        profile = cProfile.Profile(time.thread_time)
        asyncio.run(measure(sizes[-1], given.turns, {}, profile))
        pstats.Stats(profile).sort_stats("tottime").print_stats(30)
    return figures


if __name__ == "__main__":
    main()
