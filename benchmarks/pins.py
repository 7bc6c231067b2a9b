"""How long it takes to judge a turn, and, with labelled turns, how often the verdict is right.

usage: python benchmarks/pins.py [--data SESSIONS.jsonl] [--out PREDICTIONS.jsonl]

SESSIONS holds one session a line: {"session_id", "language", "turns": [{"role", "content", "labels", "pin",
"supersedes"}]}. Turns that hold machine text only (label `injected` alone) are left out, as the client profiles do.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

from proxy.pins.lifecycle import add
from proxy.pins.match import judge
from proxy.pins.model import Ledger, Verdict
from proxy.pins.rules import RuleSet, load_rules
from proxy.settings.loading import packaged_folder
from proxy.transcript import HumanTurn

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


def times(texts: list[str], rules: RuleSet) -> list[float]:
    """Gives the CPU seconds of each verdict, sorted; every text is made new to the cache."""
    spent = []
    for number, text in enumerate(texts):
        fresh = f"{text}{' ' * (number + 1)}"
        start = time.thread_time()
        judge(fresh, first=False, asked="", rules=rules)
        spent.append(time.thread_time() - start)
    return sorted(spent)


def predictions(session: dict[str, Any], rules: RuleSet) -> Iterator[tuple[int, dict[str, Any], Verdict, list[int]]]:
    """Gives turn index, turn, verdict and the turns that it replaced, for each human turn of a session."""
    ledger, asked = Ledger(), ""
    for index, turn in enumerate(session["turns"]):
        if turn["role"] != "user":
            asked = turn["content"][-400:]
            continue
        text = turn.get("pin_span") or turn["content"]
        if set(turn["labels"]) == {"injected"}:
            continue
        key = blake2b(text.encode(), digest_size=16).digest()
        verdict = judge(text, first=ledger.goal is None, asked=asked, rules=rules)
        old = {pin.id: pin for pin in ledger.pins}
        ledger = add(ledger, HumanTurn(key, text, index, "", asked=asked), rules)
        asked = ""
        gone = [
            pin.turn
            for pin in ledger.pins
            if pin.id in old and (pin.status, pin.fallen) != (old[pin.id].status, old[pin.id].fallen)
        ]
        yield index, turn, verdict, gone


def ratio(part: int, whole: int) -> str:
    """Gives a share with three digits."""
    return f"{part / whole:.3f}" if whole else "-"


def measure(path: Path, rules: RuleSet, out: Path | None) -> None:
    """Prints recall and precision of binding turns by language, and of replacements."""
    tally: Counter[tuple[str, str]] = Counter()
    lines = []
    for line in path.read_text(encoding="utf-8").split("\n"):
        if not line.strip():
            continue
        session = json.loads(line)
        for index, turn, verdict, gone in predictions(session, rules):
            outcome = f"{'pinned' if verdict.kind else 'passed'}, {'binds' if turn['pin'] else 'free'}"
            core = bool({"goal", "goal_change", "correction"} & set(turn["labels"]) and turn["pin"])
            wanted, found = set(turn["supersedes"]), set(gone)
            for group in ("all", session["language"]):
                tally[group, outcome] += 1
                tally[group, "core"] += core
                tally[group, "core pinned"] += core and verdict.kind is not None
                tally[group, "replaced right"] += len(wanted & found)
                tally[group, "replaced"] += len(found)
                tally[group, "to replace"] += len(wanted)
            labels = list(dict.fromkeys([*verdict.labels[:1], *([verdict.kind] if verdict.kind else [])]))
            row = {
                "session_id": session["session_id"],
                "turn_index": index,
                "labels": labels,
                "pin": bool(verdict.kind),
            }
            lines.append(json.dumps(row | {"supersedes": sorted(found)}))
    for group in dict.fromkeys(name for name, _ in tally):
        right, missed = tally[group, "pinned, binds"], tally[group, "passed, binds"]
        pinned = right + tally[group, "pinned, free"]
        print(
            f"{group:4} recall {ratio(right, right + missed)} precision {ratio(right, pinned)}"
            f" goal+correction {ratio(tally[group, 'core pinned'], tally[group, 'core'])}"
            f" replaced: {tally[group, 'replaced right']} right of {tally[group, 'replaced']},"
            f" {tally[group, 'to replace']} wanted"
        )
    if out:
        out.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    """Runs the measurement."""
    parser = argparse.ArgumentParser(description="time and accuracy of pin rules")
    parser.add_argument("--data", type=Path, help="labelled sessions")
    parser.add_argument("--out", type=Path, help="write the predictions here")
    args = parser.parse_args()
    start = time.perf_counter()
    rules = load_rules([packaged_folder() / "pins.yaml"])
    print(f"rules loaded in {1000 * (time.perf_counter() - start):.0f} ms")
    texts = SAMPLE
    if args.data:
        lines = args.data.read_text(encoding="utf-8").split("\n")
        sessions = (json.loads(line) for line in lines if line.strip())
        texts = [turn["content"] for session in sessions for turn in session["turns"] if turn["role"] == "user"]
    texts = [text for text in texts if len(text) < 2000]
    spent = times(texts * (1 if args.data else 20), rules)
    p50, p99 = spent[len(spent) // 2], spent[len(spent) * 99 // 100]
    print(f"judge: {len(spent)} turns under 2000 characters, CPU time p50 {1e6 * p50:.0f} µs, p99 {1e6 * p99:.0f} µs")
    if args.data:
        measure(args.data, rules, args.out)


if __name__ == "__main__":
    main()
