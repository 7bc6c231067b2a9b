"""Reads what a proxy stored through its documented doors: HTTP JSON, the command line, the data folder's files."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from sqlite3 import DatabaseError, connect
from typing import Any

import aiohttp

from tests.cases.body import text_of
from tests.cases.evidence import Record
from tests.cases.faults import clip
from tests.cases.process import Place, Proxy, command
from tests.cases.stored import active, merged

DOORS = ("facts", "pins", "receipts", "sessions")
SETTLE_SECONDS = 5.0
LOOK_SECONDS = 0.1


class Doors:
    """The doors of the proxies of one run; proxies with a data folder in common are read once."""

    def __init__(self, place: Place, http: aiohttp.ClientSession, proxies: Sequence[Proxy]) -> None:
        self.place = place
        self.http = http
        self.proxies = list({proxy.data: proxy for proxy in proxies if proxy.alive}.values())
        self.faults: dict[str, str] = {}

    async def read(self, name: str) -> list[Record]:
        """Gives the records behind one door; a door that can't be read goes to `faults`."""
        records: list[Record] = []
        for proxy in self.proxies:
            try:
                answer = await self._get(proxy, f"/admin/{name}")
                records.extend(answer[name])
            except (aiohttp.ClientError, TimeoutError, ValueError, KeyError, TypeError) as error:
                self.faults[name] = f"GET /admin/{name}: {type(error).__name__} {error}"
        if not self.proxies:
            self.faults[name] = "no proxy is running"
        return records

    async def count_facts(self) -> int:
        """Gives the number of active facts once it stands still."""
        await self.settle({})
        return len(active(merged(await self.read("facts"), await self.read("pins"))))

    async def settle(self, wanted: Mapping[str, str]) -> list[Record]:
        """Waits until the receipts of these labels are stored and nothing moves any more; gives all receipts.

        Receipts and facts are written after the answer, so a reader has to give them a moment.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + SETTLE_SECONDS
        before: object = None
        while True:
            receipts = await self.read("receipts")
            now = (receipts, await self.read("facts"))
            complete = self.faults or missing(wanted, receipts) == 0
            if (complete and now == before) or loop.time() > deadline:
                return receipts
            before = now
            await asyncio.sleep(LOOK_SECONDS)

    async def transcript(self) -> list[Record]:
        """Gives the stored messages of all sessions, as the command line shows them."""
        messages: list[Record] = []
        for proxy in self.proxies:
            for session in await self.read("sessions"):
                code, output = await command(self.place, proxy, "sessions", "show", str(session.get("id")), "--json")
                shown = _json(output)
                if code or not isinstance(shown.get("transcript"), list):
                    self.faults["transcript"] = f"sessions show: exit code {code}: {clip(output)}"
                else:
                    messages.extend(shown["transcript"])
        return messages

    async def originals(self, ids: Sequence[str]) -> dict[str, str]:
        """Gives the archived text of each id that stands for something."""
        found: dict[str, str] = {}
        for proxy in self.proxies:
            for one in ids:
                code, output = await command(self.place, proxy, "archive", "show", one, "--json")
                if code == 0:
                    found[one] = str(_json(output).get("text", ""))
        return found

    async def _get(self, proxy: Proxy, path: str) -> dict[str, Any]:
        headers = {"authorization": f"Bearer {proxy.token}"} if proxy.token else {}
        async with self.http.get(f"{proxy.url}{path}", headers=headers) as response:
            if response.status != 200:
                raise ValueError(f"status {response.status}")
            answer = json.loads(await response.read())
        return answer if isinstance(answer, dict) else {}


def missing(wanted: Mapping[str, str], receipts: Sequence[Record]) -> int:
    """Counts the requests whose receipt isn't there yet; without a known id any unclaimed receipt will do."""
    known = {str(receipt.get("id")) for receipt in receipts}
    named = {one for one in wanted.values() if one}
    nameless = sum(not one for one in wanted.values())
    return len(named - known) + max(nameless - len(known - named), 0)


def assign(wanted: Mapping[str, str], receipts: Sequence[Record]) -> dict[str, Record]:
    """Gives each label its receipt: by the id in the response header, the nameless ones in order of time."""
    by_id = {str(receipt.get("id")): receipt for receipt in receipts}
    free = [by_id[one] for one in sorted(by_id.keys() - set(wanted.values()))]
    found: dict[str, Record] = {}
    for label, one in wanted.items():
        receipt = by_id.get(one) if one else (free.pop(0) if free else None)
        if receipt is not None:
            found[label] = receipt
    return found


def files_of(proxies: Sequence[Proxy]) -> dict[str, bytes]:
    """Gives all files of the data folders, the text columns of their databases, and what the processes logged."""
    files: dict[str, bytes] = {}
    for number, proxy in enumerate(proxies):
        files[f"log-{number}"] = bytes(proxy.log)
        for path in sorted(proxy.data.rglob("*")) if proxy.data.is_dir() else ():
            if path.is_file():
                files[str(path)] = path.read_bytes()
                files[f"{path}#columns"] = _columns(path)
    return files


def _columns(path: Path) -> bytes:
    """Gives every text value of a database: a search over its raw pages misses what is split between two of them."""
    if path.read_bytes()[:15] != b"SQLite format 3":
        return b""
    out: list[bytes] = []
    try:
        with closing(connect(path)) as database:
            tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            for (table,) in tables:
                for row in database.execute(f'SELECT * FROM "{table}"'):
                    out.extend(one if isinstance(one, bytes) else text_of(one).encode() for one in row if one)
    except DatabaseError as error:
        return f"unreadable database: {error}".encode()
    return b"\n".join(out)


def _json(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
