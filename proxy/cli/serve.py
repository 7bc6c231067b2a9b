"""`goalkeeper serve`: runs the proxy until it is told to stop."""

from __future__ import annotations

import argparse
import gc

from proxy.cli.main import settings_of


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of `serve`."""
    parser.add_argument("--host", help="address to listen on (default 127.0.0.1)")
    parser.add_argument("--port", type=int, help="port to listen on, 0 for a free one (default 8787)")
    parser.add_argument("--upstream", metavar="URL", help="root of the model's API, with or without /v1")
    parser.add_argument("--token", help="bearer token for everything that isn't /v1")


def run(args: argparse.Namespace) -> int:
    """Serves until SIGTERM or SIGINT."""
    settings = settings_of(args)
    gc.disable()  # nothing that start-up makes is garbage; the server switches collection on again
    from proxy.server import run_server  # noqa: PLC0415 (wrong settings are told before aiohttp is imported)

    return run_server(settings)
