"""Runs the benchmarks one after the other, each in a process of its own; takes about three minutes.

Run: python -m benchmarks [NAME …]   (latency, turn_cpu, memory, compaction, lineage, pins; real_model only when named)
"""

from __future__ import annotations

import os
import subprocess
import sys

from benchmarks.processes import ROOT

USUAL = ("memory", "turn_cpu", "latency", "compaction", "lineage", "pins")


def main(names: list[str]) -> int:
    """Runs what is named, or the usual ones; gives 1 when one fails."""
    failed = []
    for name in names or USUAL:
        load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
        print(f"--- {name} (load {load:.1f})", flush=True)
        if subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], cwd=ROOT, check=False).returncode:
            failed.append(name)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
