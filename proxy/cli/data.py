"""Opens the data folder for a command, beside a proxy that may be running on it."""

from __future__ import annotations

import argparse
import os
import sqlite3

import msgspec

from proxy.cli.main import settings_of
from proxy.redaction import Sealer
from proxy.settings.model import Settings
from proxy.store.keys import key_path, read_key
from proxy.store.reads import Reads
from proxy.store.schema import attach, migrate


class Data(msgspec.Struct, frozen=True):
    """The database and how to read it; without the key secret values stay tokens."""

    db: sqlite3.Connection
    reads: Reads
    seal: Sealer
    settings: Settings


def open_data(args: argparse.Namespace) -> Data:
    """Opens what the settings name. Raises StoreError when nothing was stored there yet, ConfigError."""
    settings = settings_of(args)
    seal = Sealer(
        read_key(key_path(os.environ), os.environ), enabled=settings.redaction.enabled, people=settings.redaction.people
    )
    db = attach(settings.data)
    migrate(db)  # what an older version left
    return Data(db, Reads(db, seal), seal, settings)
