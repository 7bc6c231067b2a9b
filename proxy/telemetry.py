"""What operators see: counters in Prometheus' text form, and one JSON line a request on stderr."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from queue import SimpleQueue
from traceback import extract_tb
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:  # costs 100 ms at start
    import structlog

_QUEUED = 10_000
_OWN = frozenset({"receipt", "session", "relation", "pins", "compaction"})  # fields whose words are ours: no secrets
_PAUSE_SECONDS = 0.25  # lines that come meanwhile wait: to wake this thread for each would slow the requests

SECRET_HEADERS = frozenset({"authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key", "api-key"})

# every counter with its meaning and its labels; a name that isn't here can't be counted
COUNTERS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "requests_total": ("Model requests by their relation to earlier ones.", ("relation",)),
    "passed_total": ("Other requests that were passed through.", ()),
    "compactions_total": ("Cuts made by Goalkeeper.", ()),
    "restores_total": ("Requests in which lost words of the user were put back.", ()),
    "failures_open_total": ("Requests that went out in their safest form because something failed inside.", ("flag",)),
    "condensed_total": ("Blocks of a provider's own compaction that were asked for.", ("outcome",)),
    "retries_total": ("Requests that were sent a second time after a refusal.", ()),
    "errors_total": ("Requests that got an error of Goalkeeper's own, or no whole answer.", ("code",)),
    "tokens_saved_total": ("Tokens that clients sent and the upstream didn't have to read (estimate).", ()),
    "truncated_silently_total": ("Answers for which the upstream had read far less than it was sent.", ()),
    "classifier_requests_total": ("Turns about which a model was to be asked.", ("outcome",)),
    "classifier_proposals_total": ("Proposals of that model: kept, or why they were dropped.", ("outcome",)),
    "reloads_total": ("Changes of rule files and client profiles, taken or refused.", ("outcome",)),
    "pins_given_way_total": ("Requests in which pinned words didn't fit as they were.", ()),
}


class Counters:
    """Counts since the start of the process; one thread only."""

    __slots__ = ("_values",)

    def __init__(self) -> None:
        self._values: dict[tuple[str, tuple[str, ...]], int] = {}

    def add(self, name: str, *labels: str, by: int = 1) -> None:
        """Counts `by` more under a name of `COUNTERS` and the values of its labels."""
        if len(labels) != len(COUNTERS[name][1]):
            raise ValueError(f"{name} has the labels {COUNTERS[name][1]}")
        self._values[name, labels] = self._values.get((name, labels), 0) + by

    def value(self, name: str, *labels: str) -> int:
        """Gives a count, 0 when nothing was counted."""
        return self._values.get((name, labels), 0)

    def render(self) -> str:
        """Gives all counters in Prometheus' text form; what never happened is shown as zero where it has no labels."""
        lines: list[str] = []
        for name, (meaning, labels) in COUNTERS.items():
            lines += [f"# HELP goalkeeper_{name} {meaning}", f"# TYPE goalkeeper_{name} counter"]
            rows = sorted((values, count) for (known, values), count in self._values.items() if known == name)
            if not rows and not labels:
                rows = [((), 0)]
            lines += [f"goalkeeper_{name}{_labels(labels, values)} {count}" for values, count in rows]
        return "\n".join(lines) + "\n"


def _labels(names: Iterable[str], values: Iterable[str]) -> str:
    pairs = [f'{name}="{_escaped(value)}"' for name, value in zip(names, values, strict=True)]
    return "{" + ",".join(pairs) + "}" if pairs else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def masked(headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Gives headers with the values of credentials left out, fit for a log."""
    return [(name, "[masked]" if name.lower() in SECRET_HEADERS else value) for name, value in headers]


class Log:
    """Writes one JSON line for each event, in a thread of its own: a slow reader of stderr slows no request.

    Every text in a line passes `mask`, which whoever knows the key sets.
    """

    __slots__ = ("_queue", "_stream", "_thread", "dropped", "mask")

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._queue: SimpleQueue[tuple[str, str, Mapping[str, object]] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._write, name="log", daemon=True)
        self._thread.start()
        self.dropped = 0
        self.mask: Callable[[str], str] = str

    def info(self, event: str, **fields: object) -> None:
        """Logs an event; when nobody has read the last ten thousand, it is dropped and counted."""
        self._put("info", event, fields)

    def error(self, event: str, **fields: object) -> None:
        """Logs an error; an exception in `exc_info` is logged by the places it passed, without its words."""
        self._put("error", event, fields)

    def _put(self, level: str, event: str, fields: Mapping[str, object]) -> None:
        if self._queue.qsize() < _QUEUED:
            self._queue.put((level, event, {"at": datetime.now(UTC), **fields}))
        else:
            self.dropped += 1

    def close(self, seconds: float = 1.0) -> None:
        """Writes what is queued, waiting at most so long."""
        self._queue.put(None)
        self._thread.join(seconds)

    def _write(self) -> None:
        logger = None
        while (item := self._queue.get()) is not None:
            level, event, fields = item
            logger = logger or _json_logger(self._stream)
            getattr(logger, level)(event, **{name: self._plain(name, value) for name, value in fields.items()})
            if self._queue.empty():
                time.sleep(_PAUSE_SECONDS)

    def _plain(self, name: str, value: object) -> object:
        if isinstance(value, str):
            return value if name in _OWN else self.mask(value)
        if isinstance(value, datetime):
            return value.isoformat(timespec="milliseconds")
        if isinstance(value, BaseException):
            return [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in extract_tb(value.__traceback__)]
        return value


def _json_logger(stream: TextIO) -> structlog.typing.FilteringBoundLogger:
    import structlog  # noqa: PLC0415 (in the log's own thread it delays nobody)

    render = structlog.processors.JSONRenderer(ensure_ascii=True)  # control characters leave escaped
    logger: structlog.typing.FilteringBoundLogger = structlog.wrap_logger(
        structlog.WriteLogger(stream), processors=[structlog.processors.add_log_level, render]
    )
    return logger
