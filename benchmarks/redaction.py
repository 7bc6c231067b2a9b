"""How many secrets are missed, how many innocent lines are taken for one, and how long it takes to look.

usage: python -m benchmarks.redaction [--show] [--held-out]

The samples stand in tests/secrets; a quarter of their kinds was held out while the shapes were written. `--show` prints
the misses and false alarms among the others, `--held-out` those among the held-out ones.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from proxy.redaction import Sealer, find
from tests.secrets.corpus import Sample, innocent, secrets

SEEDS = 5  # how often each shape is filled anew
SIZE = 800_000


def failed(samples: Iterable[Sample]) -> list[Sample]:
    """Gives the samples of which a secret stays readable, or which hold none and are masked all the same."""
    seal = Sealer(b"k" * 32)
    wrong = []
    for sample in samples:
        masked = seal.mask(sample.text)
        seal = Sealer(b"k" * 32)  # what one sample taught must not help with the next
        left = any(secret.strip() in masked for secret in sample.secrets)
        if left if sample.secrets else masked != sample.text:
            wrong.append(sample)
    return wrong


def report(name: str, samples: Sequence[Sample], *, show: bool) -> None:
    """Prints the share of a list that goes wrong, held out and not."""
    wrong = failed(samples)
    for label, held in (("tuned on", False), ("held out", True)):
        part = [sample for sample in samples if sample.held_out is held]
        bad = [sample for sample in wrong if sample.held_out is held]
        kinds = len({sample.kind for sample in part}) if part and part[0].secrets else len(part)
        share = 100 * len(bad) / len(part)
        print(f"{name}, {label}: {len(bad)} of {len(part)} ({share:.1f} %), {kinds} shapes")
    if show:
        for sample in wrong:
            print(f"    {sample.kind}: {sample.text[:120]!r}")


def times() -> None:
    """Prints the CPU time of a search through 800 kB of several sorts of text."""
    files = sorted(Path(json.__file__).parent.parent.glob("*.py"))  # the standard library
    code = "".join(path.read_text("utf-8") for path in files)
    line = "2026-11-30T12:00:01.123Z INFO worker-3 id=8f14e45f-ceea-467f-a0e6-1b2c3d4e5f60 path=/v1/orders took=12ms\n"
    sorts = {"code": code, "code as JSON": json.dumps(code), "log": line * (SIZE // len(line) + 1)}
    sorts["prose"] = "The quick brown fox jumps over the lazy dog. " * (SIZE // 45 + 1)
    for name, text in sorts.items():
        spent = []
        for _ in range(7):
            start = time.thread_time()
            find(text[:SIZE])
            spent.append(time.thread_time() - start)
        print(f"{name}: {1000 * min(spent):.1f} ms for {len(text[:SIZE]) // 1000} kB")


def main() -> None:
    """Runs the measurement."""
    parser = argparse.ArgumentParser(description="misses, false alarms and speed of the search for secrets")
    parser.add_argument("--show", action="store_true", help="print what goes wrong among the samples tuned on")
    parser.add_argument("--held-out", action="store_true", help="print what goes wrong among the others too")
    args = parser.parse_args()
    for name, make in (("missed", secrets), ("false alarms", innocent)):
        samples = [sample for seed in range(SEEDS) for sample in make(seed)]
        report(name, samples, show=False)
        if args.show or args.held_out:
            shown = [sample for sample in make(0) if args.held_out or not sample.held_out]
            for sample in failed(shown):
                print(f"    {sample.kind}: {sample.text[:150]!r}")
    times()


if __name__ == "__main__":
    main()
