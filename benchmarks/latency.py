"""What Goalkeeper adds to a request, beside a plain aiohttp proxy, on the same machine in the same minute.

Rounds are interleaved (direct, plain, ours, direct, …), so that noise falls on all alike. For each size:

same    the same request again and again on one connection
grow    a session that appends one turn a request
cut     the same with a budget of three quarters of its first size, so that compaction is active
stream  the same request, answered by 2000 events

Milliseconds: `p50`, medians over rounds; `min`, the least disturbed request; `cpu`, what a request costs the thread of
the server's event loop. `added` is p50 less that of direct, `added_min` the same of min; ratios are ours / plain of
added, of added_min, of p50 and of cpu. On a busy machine cpu and min say more than p50.

Run: python -m benchmarks.latency [--sizes 1,20,200] [--rounds 5] [--requests 40]
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from statistics import median
from typing import Any

from benchmarks.client import Connection
from benchmarks.gen import chat
from benchmarks.memory import warm
from benchmarks.processes import Running, goalkeeper, model, passthrough

STREAMED = (1, 20)  # thousand tokens of the requests whose answer is streamed


@dataclass(frozen=True, slots=True)
class Sample:
    """One target in one round, in milliseconds a request."""

    p50: float
    least: float
    cpu: float


def _post(connection: Connection, body: bytes, headers: str = "") -> float:
    answer = connection.post(body, headers)
    if answer.status != 200:
        raise RuntimeError(f"status {answer.status}: {answer.body[:200]!r}")
    return answer.seconds * 1e3


def _sample(target: Running, bodies: list[bytes], headers: str = "") -> Sample:
    """Sends requests on one connection; the first one, the first sight of the session, doesn't count."""
    connection = Connection(target.port)
    _post(connection, bodies[0], headers)
    before = target.loop_cpu()
    times = [_post(connection, body, headers) for body in bodies[1:]]
    cpu = (target.loop_cpu() - before) * 1e3 / len(times)
    connection.close()
    return Sample(median(times), min(times), cpu)


def same(target: Running, tokens: int, requests: int, *, stream: bool = False) -> Sample:
    """Sends one request again and again."""
    return _sample(target, [chat(tokens).body(stream=stream)] * (requests + 1))


def grow(target: Running, tokens: int, seed: int, requests: int, headers: str = "") -> Sample:
    """Sends a session that appends one turn a request."""
    talk = chat(tokens, seed)
    bodies = [talk.body()]
    for _ in range(requests):
        talk.grow()
        bodies.append(talk.body())
    return _sample(target, bodies, headers)


def _measured(
    targets: dict[str, Running], sizes: list[int], rounds: int, requests: int
) -> Iterator[tuple[str, str, Sample]]:
    """Gives measurement, target and sample, target after target, round after round."""
    for number, size in product(range(rounds), sizes):
        tokens = size * 1000
        budget = f"x-goalkeeper-budget: {tokens * 3 // 4}\r\n"
        for name, target in targets.items():
            yield f"same {size}k", name, same(target, tokens, requests)
        for name, target in targets.items():
            yield f"grow {size}k", name, grow(target, tokens, 1_000 + number, requests)
        for name, target in targets.items() if size > 1 else ():
            yield f"cut {size}k", name, grow(target, tokens, 2_000 + number, requests, budget)
        for name, target in targets.items() if size in STREAMED else ():
            yield f"stream {size}k", name, same(target, tokens, 5, stream=True)


def summary(samples: dict[str, list[Sample]]) -> dict[str, Any]:
    """Gives the figures of one measurement."""
    p50 = {name: median(one.p50 for one in found) for name, found in samples.items()}
    least = {name: min(one.least for one in found) for name, found in samples.items()}
    cpu = {name: median(one.cpu for one in found) for name, found in samples.items()}
    ratios = {
        "added": _ratio(p50["ours"] - p50["direct"], p50["plain"] - p50["direct"]),
        "added_min": _ratio(least["ours"] - least["direct"], least["plain"] - least["direct"]),
        "p50": _ratio(p50["ours"], p50["plain"]),
        "cpu": _ratio(cpu["ours"], cpu["plain"]),
    }
    return {"p50": _rounded(p50), "min": _rounded(least), "cpu": _rounded(cpu), "ratio": ratios}


def _ratio(ours: float, plain: float) -> float | None:
    return round(ours / plain, 2) if plain > 0 else None  # noise can make the plain proxy faster than none


def _rounded(figures: dict[str, float]) -> dict[str, float]:
    return {name: round(value, 3) for name, value in figures.items()}


def main() -> dict[str, Any]:
    """Measures all and prints JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="1,20,200", help="thousand tokens of 4 bytes")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=40, help="for each figure of a round")
    given = parser.parse_args()
    sizes = [int(size) for size in given.sizes.split(",")]
    found: dict[str, dict[str, list[Sample]]] = defaultdict(lambda: defaultdict(list))
    with model() as direct, passthrough(direct.url) as plain, goalkeeper(direct.url) as ours:
        same(ours, 1_000, 1)
        warm(ours)
        targets = {"direct": direct, "plain": plain, "ours": ours}
        for what, name, sample in _measured(targets, sizes, given.rounds, given.requests):
            found[what][name].append(sample)
    figures = {what: summary(samples) for what, samples in found.items()}
    print(json.dumps(figures, indent=1))
    return figures


if __name__ == "__main__":
    main()
