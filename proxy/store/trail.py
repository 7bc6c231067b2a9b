"""The trail of a session: each request, each rewrite and each tool call, in the order in which they happened.

A call is made by an answer and its result comes with a later request: both stand in one line. What it took is the time
between the end of that answer and the arrival of that request, so it holds what the agent itself took as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from proxy.store.ids import time_of

Row = dict[str, Any]


def trail(receipts: Sequence[Row]) -> list[Row]:
    """Gives the trail of these receipts, which come oldest first and with every field."""
    rows: list[Row] = []
    waiting: dict[tuple[str, str], Row] = {}  # calls without a result, by branch (or none) and id
    before: dict[str, list[str]] = {}  # insertions of each track's newest request
    for receipt in receipts:
        rows.append(_request(receipt))
        new = [name for name in receipt["insertions"] if name not in before.get(receipt["track"], ())]
        if receipt["track"]:
            before[receipt["track"]] = receipt["insertions"]
        if receipt["compaction"] or new:
            rows.append(_rewrite(receipt, new))
        for call in receipt["calls"]:
            if call["origin"] == "answer":
                row = _call(receipt, call)
                rows.append(row)
                waiting[receipt["branch"], call["id"]] = waiting["", call["id"]] = row
            else:
                _result(receipt, call, waiting, rows)
    return rows


def _row(receipt: Row, what: str, **fields: object) -> Row:
    empty: Row = {"name": "", "arguments": "", "outcome": "", "ms": None}
    return {"at": receipt["at"], "receipt": receipt["id"], "what": what, **empty, **fields}


def _request(receipt: Row) -> Row:
    """A request; its time is that of its arrival, `ms` what it took until the end of the answer."""
    took = _took(time_of(receipt["id"]), receipt["at"])
    size = f"{receipt['tokens_in']} tokens"
    flags = f", {', '.join(receipt['flags'])}" if receipt["flags"] else ""
    outcome = f"{receipt['status']}, {size}{flags}"
    return _row(receipt, "request", at=_iso(receipt["id"]), name=receipt["relation"], ms=took, outcome=outcome)


def _rewrite(receipt: Row, new: Sequence[str]) -> Row:
    pins = f"{receipt['pins_present']}/{receipt['pins_active']} pins"
    outcome = f"{receipt['tokens_in']} → {receipt['tokens_out']} tokens, {pins}"
    made = f", made {', '.join(new)}" if new else ""
    return _row(receipt, "rewrite", at=_iso(receipt["id"]), name=receipt["compaction"], outcome=outcome + made)


def _call(receipt: Row, call: Row) -> Row:
    return _row(
        receipt, "call", name=call["name"], arguments=call["arguments"], id=call["id"], made_in=receipt["id"],
        brought_in="",
    )  # fmt: skip


def _result(receipt: Row, call: Row, waiting: dict[tuple[str, str], Row], rows: list[Row]) -> None:
    """Adds a result to the call that it belongs to; one whose call was never seen made is a line of its own."""
    row = waiting.get((receipt["branch"], call["id"])) or waiting.get(("", call["id"]))
    if row is None or row["arguments"] != call["arguments"]:
        row = _call(receipt, call) | {"at": _iso(receipt["id"]), "made_in": ""}
        rows.append(row)
    waiting.pop((receipt["branch"], call["id"]), None)
    waiting.pop(("", call["id"]), None)
    row |= {"outcome": call["outcome"], "brought_in": receipt["id"]}
    if row["made_in"]:
        row["ms"] = _took(_seconds(row["at"]), _iso(receipt["id"]))


def _iso(ulid: str) -> str:
    moment = datetime.fromtimestamp(time_of(ulid), UTC).isoformat(timespec="milliseconds")
    return moment.replace("+00:00", "Z")


def _seconds(at: str) -> float:
    try:
        return datetime.fromisoformat(at).timestamp()
    except ValueError:
        return 0.0


def _took(start: float, end: str) -> int | None:
    """Gives milliseconds, None where a clock was set back or a time isn't known."""
    took = round((_seconds(end) - start) * 1000)
    return took if start and took >= 0 else None
