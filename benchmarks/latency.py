"""What Goalkeeper adds to a request, beside a plain aiohttp proxy, on the same machine in the same minute.

Rounds are interleaved (direct, plain, ours, direct, …), so that noise falls on all alike. For each size:

same    the same request again and again on one connection
grow    a session that appends one turn a request
cut     the same with a budget of three quarters of its first size, so that compaction is active
stream  the same request, answered by 2000 events

Figures are medians in ms. `added` is the median less that of direct; `ratio` is added(ours) / added(plain), for streams
total(ours) / total(plain).

Run: python -m benchmarks.latency [--sizes 1,20,200] [--rounds 5] [--requests 40]
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterator
from itertools import product
from statistics import median
from typing import Any

from benchmarks.client import Connection
from benchmarks.gen import Chat, chat
from benchmarks.memory import warm
from benchmarks.processes import goalkeeper, model, passthrough

STREAMED = (1, 20)  # thousand tokens of the requests whose answer is streamed
Times = dict[str, list[float]]


def _post(connection: Connection, body: bytes, headers: str = "") -> float:
    answer = connection.post(body, headers)
    if answer.status != 200:
        raise RuntimeError(f"status {answer.status}: {answer.body[:200]!r}")
    return answer.seconds * 1e3


def same(port: int, tokens: int, requests: int, *, stream: bool = False) -> list[float]:
    """Sends one request again and again."""
    connection, body = Connection(port), chat(tokens).body(stream=stream)
    times = [_post(connection, body) for _ in range(requests + 2)]
    connection.close()
    return times[2:]


def grow(port: int, talk: Chat, requests: int, headers: str = "") -> list[float]:
    """Sends a session that appends one turn a request; the first sight of it doesn't count."""
    connection = Connection(port)
    _post(connection, talk.body(), headers)
    times = []
    for _ in range(requests):
        talk.grow()
        times.append(_post(connection, talk.body(), headers))
    connection.close()
    return times


def _measured(ports: dict[str, int], sizes: list[int], rounds: int, requests: int) -> Iterator[tuple[str, str, float]]:
    """Gives measurement, target and the median of its times, target after target, round after round."""
    for number, size in product(range(rounds), sizes):
        tokens = size * 1000
        budget = f"x-goalkeeper-budget: {tokens * 3 // 4}\r\n"
        for name, port in ports.items():
            yield f"same {size}k", name, median(same(port, tokens, requests))
        for name, port in ports.items():
            yield f"grow {size}k", name, median(grow(port, chat(tokens, 1_000 + number), requests))
        for name, port in ports.items() if size > 1 else ():
            yield f"cut {size}k", name, median(grow(port, chat(tokens, 2_000 + number), requests, budget))
        for name, port in ports.items() if size in STREAMED else ():
            yield f"stream {size}k", name, median(same(port, tokens, 5, stream=True))


def summary(times: Times, *, streamed: bool) -> dict[str, Any]:
    """Gives medians over rounds, what each proxy adds, and the ratio of ours to the plain one."""
    middle = {name: round(median(values), 3) for name, values in times.items()}
    added = {name: round(middle[name] - middle["direct"], 3) for name in middle if name != "direct"}
    whole = middle if streamed else added
    return {"p50_ms": middle, "added_ms": added, "ratio": round(whole["ours"] / max(whole["plain"], 1e-3), 2)}


def main() -> dict[str, Any]:
    """Measures all and prints JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="1,20,200", help="thousand tokens of 4 bytes")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=40, help="for each figure of a round")
    given = parser.parse_args()
    sizes = [int(size) for size in given.sizes.split(",")]
    found: dict[str, Times] = defaultdict(lambda: defaultdict(list))
    with model() as direct, passthrough(direct.url) as plain, goalkeeper(direct.url) as ours:
        same(ours.port, 1_000, 1)
        warm(ours)
        ports = {"direct": direct.port, "plain": plain.port, "ours": ours.port}
        for what, name, middle in _measured(ports, sizes, given.rounds, given.requests):
            found[what][name].append(middle)
    figures = {what: summary(times, streamed=what.startswith("stream")) for what, times in found.items()}
    print(json.dumps(figures, indent=1))
    return figures


if __name__ == "__main__":
    main()
