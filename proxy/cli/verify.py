"""`goalkeeper verify`: checks every stored receipt again; exit code 1 when something doesn't hold."""

from __future__ import annotations

import argparse

from proxy.cli.data import open_data
from proxy.cli.main import printable
from proxy.cli.output import add_json_flag, print_json
from proxy.dialects.known import all_dialects
from proxy.reloading import read_profiles
from proxy.store.replay import Replay, verify


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds `--json`."""
    add_json_flag(parser)


def run(args: argparse.Namespace) -> int:
    """Checks pairing, pins, prefixes and what was forwarded."""
    data = open_data(args)
    report = verify(data.db, data.reads, Replay(data.reads, read_profiles(data.settings), all_dialects()))
    if args.json:
        problems = [{"receipt": one.receipt, "problem": one.text} for one in report.problems]
        print_json(
            {"receipts": report.receipts, "rebuilt": report.rebuilt, "exact": report.exact, "problems": problems}
        )
    else:
        for one in report.problems:
            print(printable(f"{one.receipt}: {one.text}"))
        counts = f"{report.rebuilt} of {report.receipts} receipts rebuilt, {report.exact} byte for byte"
        print(f"{counts}, {len(report.problems)} problems")
    return 1 if report.problems else 0
