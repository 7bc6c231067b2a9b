"""`goalkeeper facts`: what people said that binds, with source and history, and changing it by hand."""

from __future__ import annotations

import argparse

from proxy.cli import facts_edit, facts_forget, facts_import, facts_promote, facts_read, facts_stale

_PARTS = (facts_read, facts_edit, facts_import, facts_promote, facts_stale, facts_forget)


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds all that can be done with facts."""
    names = "|".join(name for part in _PARTS for name in part.DOING)
    doing = parser.add_subparsers(dest="doing", required=True, metavar=names)
    for part in _PARTS:
        part.configure(doing)


def run(args: argparse.Namespace) -> int:
    """Runs one of them."""
    part = next(part for part in _PARTS if args.doing in part.DOING)
    return int(part.run(args))
