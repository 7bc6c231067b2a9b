"""How long Goalkeeper takes to listen, and how much memory it holds: at that moment, and after a 20k request.

`start_s` counts from the start of Python to the line "listening on …"; `start_cpu_s` is the CPU time of the same, which
a busy machine stretches less.

Run: python -m benchmarks.memory [--starts 5]
"""

from __future__ import annotations

import argparse
import json
import time
import urllib.request
from statistics import median
from typing import Any

from benchmarks.client import Connection
from benchmarks.gen import chat
from benchmarks.processes import Running, goalkeeper, model

TOKENS = 20_000
_PATIENCE = 30.0


def warm(ours: Running) -> None:
    """Waits until the vocabulary is loaded, which the first request sets off."""
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        with urllib.request.urlopen(f"{ours.url}/readyz") as page:
            if json.load(page)["loaded"]["vocabulary"]:
                return
        time.sleep(0.05)
    raise RuntimeError("the vocabulary isn't loaded")


def once(upstream: str) -> dict[str, float]:
    """Measures one start and one long request."""
    with goalkeeper(upstream) as ours:
        start_cpu, listening = ours.cpu(), ours.rss()
        connection, body = Connection(ours.port), chat(TOKENS).body()
        connection.post(body)
        warm(ours)
        for _ in range(3):
            connection.post(body)
        rss = ours.rss()
    return {"start_s": ours.seconds, "start_cpu_s": start_cpu, "listening_mb": listening, "after_20k_mb": rss}


def main() -> dict[str, Any]:
    """Prints medians over several starts as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--starts", type=int, default=5)
    given = parser.parse_args()
    with model() as upstream:
        rows = [once(upstream.url) for _ in range(given.starts)]
    figures = {name: round(median(row[name] for row in rows), 2) for name in rows[0]}
    figures["start_s_best"] = round(min(row["start_s"] for row in rows), 2)
    print(json.dumps(figures, indent=1))
    return figures


if __name__ == "__main__":
    main()
