"""The command `goalkeeper`: reads the command line and calls one command's module."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from proxy.errors import BadRequest, ConfigError, GoalkeeperError
from proxy.settings.loading import load_settings
from proxy.settings.model import Settings

# name → (module, what it does); a module has `configure(parser)` and `run(args) -> exit code`
COMMANDS = {
    "serve": ("proxy.cli.serve", "run the proxy"),
    "demo": ("proxy.cli.demo", "watch a long session survive its compactions"),
    "check": ("proxy.cli.check", "check settings, pin rules and client profiles"),
    "sessions": ("proxy.cli.sessions", "list sessions"),
    "rules": ("proxy.cli.rules", "try pin rules on words, transcripts and labelled sessions"),
    "pins": ("proxy.cli.pins", "list, add, close and retract pins"),
    "facts": ("proxy.cli.facts", "list, find, change, import, promote and forget facts"),
    "why": ("proxy.cli.why", "show where a fact comes from"),
    "receipts": ("proxy.cli.receipts", "list, show, compare and replay what happened to each request"),
    "archive": ("proxy.cli.archive", "show what an archive id stands for"),
    "context": ("proxy.cli.context", "show what a session's context consists of"),
    "plan": ("proxy.cli.plan", "show what the proxy would make of a request body"),
    "schema": ("proxy.cli.schema", "print the JSON Schema of rule files, client profiles or settings, for editors"),
    "verify": ("proxy.cli.verify", "check every stored receipt again"),
}


def settings_of(args: argparse.Namespace) -> Settings:
    """Gives the settings that the command line, the environment and the files make together. Raises ConfigError."""
    flags = {name: getattr(args, name, None) for name in ("host", "port", "upstream", "data", "token")}
    return load_settings(args.config, os.environ, flags)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and gives its exit code: 0 fine, 1 not found or failed, 2 wrong usage or settings."""
    argv = list(sys.argv[1:] if argv is None else argv)
    args = _parser(argv).parse_args(argv)
    try:
        return int(importlib.import_module(COMMANDS[args.command][0]).run(args))
    except (ConfigError, BadRequest) as error:
        print(printable(without_secrets(str(error))), file=sys.stderr)
        return 2
    except GoalkeeperError as error:
        print(printable(without_secrets(f"goalkeeper: {error}")), file=sys.stderr)
        return 1
    except BrokenPipeError:  # `goalkeeper facts | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def without_secrets(error: str) -> str:
    """Gives an error's words without secret values: it may quote a setting with a password, and end up in any log."""
    from proxy.redaction import Sealer  # noqa: PLC0415 (only where something went wrong)

    return Sealer(None).mask(error)


def printable(text: str) -> str:
    """Gives text with control characters escaped: an error may quote hostile words, a terminal obeys them."""
    return "".join(c if c == "\n" or c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class _Command(argparse.ArgumentParser):
    """A command or a part of one; argparse makes the parsers below it of the same class."""

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 (as argparse makes it)
        super().__init__(**settings)
        # the global flags may stand behind every word; SUPPRESS keeps what stood before it
        _add_global_flags(self, argparse.SUPPRESS, argparse.SUPPRESS)


def _parser(argv: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="goalkeeper", description="A proxy that keeps what the user said.")
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and stop")
    _add_global_flags(parser, [], None)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Command)
    chosen = _command_in(argv)
    for name, (module, what) in COMMANDS.items():
        command = commands.add_parser(name, help=what, description=what[0].upper() + what[1:] + ".")
        if name == chosen:  # imports cost time: only the command that is meant
            importlib.import_module(module).configure(command)
    return parser


def _command_in(argv: Sequence[str]) -> str:
    """Gives the first word that is neither a flag nor a global flag's value."""
    pairs = zip(["", *argv], argv, strict=False)
    return next((word for before, word in pairs if word[:1] != "-" and before not in ("--config", "--data")), "")


def _add_global_flags(parser: argparse.ArgumentParser, config: object, data: object) -> None:
    parser.add_argument(
        "--config", type=Path, action="append", metavar="FILE", default=config, help="settings file (repeatable)"
    )
    parser.add_argument("--data", type=Path, metavar="FOLDER", default=data, help="folder of log, archive and facts")


class _Version(argparse.Action):
    """Prints the installed version; looked up only when asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 (costs 30 ms)

        try:
            number = version("goalkeeper")
        except PackageNotFoundError:
            number = "(not installed)"
        print(f"goalkeeper {number}")
        parser.exit()
