"""How long it takes to judge a turn, in CPU time of the thread, on turns that no cache has seen.

usage: python -m benchmarks.pins [--data SESSIONS.jsonl]

How often the verdict is right is told by `goalkeeper rules score SESSIONS.jsonl`.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

from proxy.cli.labelled import read_sessions
from proxy.pins.lifecycle import add
from proxy.pins.match import judge
from proxy.pins.model import Ledger
from proxy.pins.rules import RuleSet, load_rules
from proxy.settings.loading import packaged_folder
from proxy.transcript import HumanTurn

LONGEST = 2000  # characters of the turns that are timed
SAMPLE = [
    "continue",
    "ok, go on with the next module",
    "No, column headers must stay in Finnish, the accountants read them.",
    "why does the build fail on the second machine?",
    "it crashes on files without exif",
    "不对，按钮必须是绿色的。",
    "Nein, das Datum bitte im Format TT.MM.JJJJ.",
    "Build a tool that renames photos by date. " * 8,
    "From now on answer in German and keep the code in English. " * 30,
    'see below\nTraceback (most recent call last):\n  File "a.py", line 3\nNameError: x',
]


def judging(texts: list[str], rules: RuleSet) -> list[float]:
    """Gives the CPU seconds of each verdict, sorted; every text is made new to the cache."""
    spent = []
    for number, text in enumerate(texts):
        fresh = f"{text}{' ' * (number % 7 + 1)}{number}"
        start = time.thread_time()
        judge(fresh, first=False, asked="", rules=rules)
        spent.append(time.thread_time() - start)
    return sorted(spent)


def adding(texts: list[str], rules: RuleSet) -> list[float]:
    """Gives the CPU seconds of each step of a ledger that grows to forty turns again and again, sorted."""
    spent = []
    ledger = Ledger()
    for number, text in enumerate(texts):
        if number % 40 == 0:
            ledger = Ledger()
        turn = HumanTurn(f"{number}".encode(), f"{text} {number}", number, "")
        start = time.thread_time()
        ledger = add(ledger, turn, rules)
        spent.append(time.thread_time() - start)
    return sorted(spent)


def main() -> None:
    """Runs the measurement."""
    parser = argparse.ArgumentParser(description="CPU time of pin rules")
    parser.add_argument("--data", type=Path, help="take the user turns of these sessions")
    args = parser.parse_args()
    start = time.perf_counter()
    rules = load_rules([packaged_folder() / "pins.yaml"])
    print(f"rules loaded in {1000 * (time.perf_counter() - start):.0f} ms")
    texts = SAMPLE * 20
    if args.data:
        sessions = read_sessions(args.data, labelled=False)
        texts = [turn.content for session in sessions for turn in session.turns if turn.role == "user"]
    texts = [text for text in texts if len(text) < LONGEST]
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    for name, spent in (("judge", judging(texts, rules)), ("add", adding(texts, rules))):
        p50, p99 = spent[len(spent) // 2], spent[len(spent) * 99 // 100]
        print(f"{name}: {len(spent)} turns, CPU time p50 {1e6 * p50:.0f} µs, p99 {1e6 * p99:.0f} µs (load {load:.1f})")


if __name__ == "__main__":
    main()
