"""The mechanical digest: what a span of work leaves in the log, without any model call.

Summaries lose evidence first: paths, commands, exit codes, error lines. So each step keeps exactly these, on one line,
and the log keeps what the assistant closed with, what it found, its newest plan and the files it wrote.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from proxy.compaction.blocks import escape, one_line
from proxy.transcript import Message, Part

_ARGUMENTS = (
    "file_path",
    "path",
    "filename",
    "file",
    "cmd",
    "command",
    "commands",
    "script",
    "query",
    "pattern",
    "url",
)
_EXIT = re.compile(
    r"\b(?:exit(?:ed)?(?:[ _]with)?(?:[ _](?:code|status))?|returncode)\b\W{0,3}(\d{1,3})\b", re.IGNORECASE
)
_ERROR = re.compile(
    r"(?:error|exception|fail(?:ed|ure)|fatal|panic(?:ked)?|denied|not found|cannot|no such file)\b", re.IGNORECASE
)
_TALLY = re.compile(
    r"\b\d+ (?:passed|failed|errors?|skipped|warnings?)\b(?:[^\n]{0,60}\b\d+ (?:passed|failed|errors?))*"
)
# Walking through a tool result of 3 kB takes a regular expression 0.1 ms: it is tried only where one of its words is.
_EXIT_WORDS = ("exit", "returncode")
_ERROR_WORDS = ("error", "exception", "fail", "fatal", "panic", "denied", "not found", "cannot", "no such file")
_TALLY_WORDS = (" passed", " failed", " error", " skipped", " warning")  # behind a number
_NUMBER_BEFORE = re.compile(r"\d+\Z")
_DIGITS = 20  # of a number that is looked at
_PLAN_TOOL = re.compile(r"todo|plan|task_?list", re.IGNORECASE)
_WRITE_TOOL = re.compile(r"write|edit|patch|create|replace|insert|delete|remove|rename|move", re.IGNORECASE)
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s+")
_INTENT = re.compile(
    r"^(?:let me|let's|i'll|i will|i am going|i'm going|now|next|first|then|ok(?:ay)?|sure|reading|running|looking"
    r"|checking|searching|opening|trying|going)\b",
    re.IGNORECASE,
)
_EVIDENCE = re.compile(
    r"[\d`/_]|\b(?:because|cause|bug|missing|wrong|fails?|needs?|must|found|depends)\b", re.IGNORECASE
)
_SEARCHED = 20_000  # characters of a result that are searched from each end
_SHORT_RESULT = 100  # characters of a result that is kept whole

LineKind = Literal["step", "answer", "finding", "plan", "files"]


class LogLine(msgspec.Struct, frozen=True):
    """One line of the work log, and the shorter form that it takes when the log grows too long."""

    turn: int
    kind: LineKind
    full: str
    short: str


class Step(msgspec.Struct, frozen=True):
    """One tool call with its result."""

    turn: int
    call: Part
    result: str


def digest(messages: Sequence[Message], numbers: Mapping[int, int], *, findings: int = 1_600) -> tuple[LogLine, ...]:
    """Gives the log lines of a span in order; `numbers` gives the turn number of each message by its index in the span.

    `findings` bounds the characters of the sentences that the assistant stated on the way.
    """
    messages, numbers = _joined(messages, numbers)
    found = list(_steps(messages, numbers))
    lines = [_step_line(step) for step in found]
    lines.extend(_answers(messages, numbers))
    lines.extend(_findings(messages, numbers, findings))
    lines.sort(key=lambda line: line.turn)
    lines.extend(_plan(found))
    lines.extend(_written(found))
    return tuple(lines)


def _joined(messages: Sequence[Message], numbers: Mapping[int, int]) -> tuple[Sequence[Message], Mapping[int, int]]:
    """Puts an answer that came as several items together, as it is one message in other dialects."""
    joined: list[Message] = []
    turns: dict[int, int] = {}
    for index, message in enumerate(messages):
        if joined and joined[-1].role == message.role == "assistant":
            last = joined[-1]
            joined[-1] = Message(last.raw, last.digest, last.role, last.parts + message.parts)
        else:
            joined.append(message)
        place = len(joined) - 1
        turns[place] = turns.get(place) or numbers.get(index, 0)
    return joined, turns


def _words(message: Message) -> str:
    return "\n".join(part.text for part in message.parts if part.kind == "text")


def outcome(result: str) -> str:
    """Gives what a tool result says in one bounded line: exit status, first error line, test tally, or its size."""
    if len(result) <= _SHORT_RESULT:
        return f'"{one_line(result, _SHORT_RESULT)}"' if result.strip() else "no output"
    head = result if len(result) <= 2 * _SEARCHED else result[:_SEARCHED] + "\n" + result[-_SEARCHED:]
    status = _search(_EXIT, _EXIT_WORDS, head)
    tally = _search(_TALLY, _TALLY_WORDS, head, before=_NUMBER_BEFORE)
    fields = [_size(len(result))]
    line = one_line(_error_line(head), 200)
    if status and status.group() not in line:
        fields.append(f"exit {status.group(1)}")
    if tally and tally.group() not in line:
        fields.append(one_line(tally.group(), 80))
    if line:
        fields.append(f'"{line}"')
    return ", ".join(fields)


def _search(
    pattern: re.Pattern[str], words: Sequence[str], text: str, before: re.Pattern[str] | None = None
) -> re.Match[str] | None:
    """Gives the first match of a pattern that begins with one of the words, or with `before` in front of it."""
    lower = text.lower()
    if len(lower) != len(text):  # the places in both must be the same
        return pattern.search(text) if any(word in lower for word in words) else None
    first: re.Match[str] | None = None
    for word in words:
        at = lower.find(word)
        while at >= 0 and (first is None or at < first.end()):
            ahead = before.search(text, max(0, at - _DIGITS), at) if before else None
            found = pattern.match(text, ahead.start() if ahead else at)
            if found and (first is None or found.start() < first.start()):
                first = found
            at = lower.find(word, at + 1) if not found else -1
    return first


def _error_line(text: str) -> str:
    """Gives the first line that names an error, "" without one."""
    found = _search(_ERROR, _ERROR_WORDS, text)
    if found is None:
        return ""
    start = text.rfind("\n", 0, found.start()) + 1
    end = text.find("\n", found.end())
    return text[start : end if end >= 0 else len(text)]


def arguments(call: Part, limit: int = 300) -> str:
    """Gives the telling arguments of a call: paths, commands, queries; else the whole JSON, bounded."""
    try:
        values = msgspec.json.decode(call.text or "{}")
    except (msgspec.DecodeError, UnicodeDecodeError):
        return one_line(call.text, limit)
    if not isinstance(values, dict):
        return one_line(call.text, limit)
    telling = [_plain(values[name]) for name in _ARGUMENTS if values.get(name)]
    if not telling:
        telling = [value for value in values.values() if isinstance(value, str) and value][:1]
    return one_line(" ".join(telling[:2]) if telling else call.text, limit)


def _plain(value: object) -> str:
    if isinstance(value, list):
        return " ".join(str(item) for item in value)
    return value if isinstance(value, str) else str(value)


def _size(characters: int) -> str:
    return f"{characters} chars" if characters < 1_000 else f"{characters / 1_000:.1f}k"


def _steps(messages: Sequence[Message], numbers: Mapping[int, int]) -> Iterable[Step]:
    for index, message in enumerate(messages):
        calls = [part for part in message.parts if part.kind == "call"]
        if not calls:
            continue
        results = _results_after(messages, index)
        for call in calls:
            yield Step(numbers.get(index, 0), call, results.get(call.call_id, ""))


def _results_after(messages: Sequence[Message], index: int) -> dict[str, str]:
    found: dict[str, str] = {}
    for message in messages[index + 1 :]:
        results = [part for part in message.parts if part.kind == "result"]
        if not results:
            break
        found.update((part.call_id, part.text) for part in results)
    return found


def _step_line(step: Step) -> LogLine:
    head = f"t{step.turn} {one_line(step.call.name, 60)} {arguments(step.call)}"
    error = one_line(_error_line(step.result[:_SEARCHED] + "\n" + step.result[-_SEARCHED:]), 120)
    short = f'{head}: "{error}"' if error else head
    return LogLine(step.turn, "step", f"{head}: {outcome(step.result)}", short)


def _answers(messages: Sequence[Message], numbers: Mapping[int, int]) -> Iterable[LogLine]:
    """The closing words of the assistant before each human turn: the newest in full, older ones shortened."""
    closing: list[tuple[int, str]] = []
    for index, message in enumerate(messages):
        plain = message.role == "assistant" and not any(part.kind == "call" for part in message.parts)
        if plain and (text := _words(message).strip()):
            closing.append((numbers.get(index, 0), text))
    for position, (turn, text) in enumerate(closing):
        limit = 1_200 if position == len(closing) - 1 else 240
        line = f't{turn} assistant answered: "{one_line(text, limit)}"'
        yield LogLine(turn, "answer", line, f't{turn} assistant answered: "{one_line(text, 120)}"')


def _findings(messages: Sequence[Message], numbers: Mapping[int, int], bound: int) -> Iterable[LogLine]:
    """Whole sentences with evidence that the assistant stated beside its calls, newest first up to the bound."""
    kept: list[LogLine] = []
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if message.role != "assistant" or not any(part.kind == "call" for part in message.parts):
            continue
        for sentence in _SENTENCE.split(_words(message)):
            text = one_line(sentence, 400)
            if len(text) < 25 or _INTENT.match(text) or not _EVIDENCE.search(text) or text.endswith("…"):
                continue
            if len(text) > bound:
                return reversed(kept)
            bound -= len(text)
            line = f't{numbers.get(index, 0)} assistant noted: "{text}"'
            kept.append(LogLine(numbers.get(index, 0), "finding", line, line))
    return reversed(kept)


def _plan(steps: Sequence[Step]) -> Iterable[LogLine]:
    newest = next((step for step in reversed(steps) if _PLAN_TOOL.search(step.call.name)), None)
    if newest is not None:
        text = f"t{newest.turn} newest plan ({one_line(newest.call.name, 60)}): {one_line(newest.call.text, 2_000)}"
        yield LogLine(newest.turn, "plan", text, text)


def _written(steps: Sequence[Step]) -> Iterable[LogLine]:
    files: dict[str, None] = {}
    for step in steps:
        if _WRITE_TOOL.search(step.call.name) and not _PLAN_TOOL.search(step.call.name):
            files[_path(step.call)] = None
    files.pop("", None)
    if files:
        text = escape("files written: " + ", ".join(list(files)[-60:]))
        yield LogLine(steps[-1].turn, "files", text, text)


def _path(call: Part) -> str:
    try:
        values = msgspec.json.decode(call.text or "{}")
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""
    if not isinstance(values, dict):
        return ""
    return one_line(next((str(values[name]) for name in _ARGUMENTS[:4] if values.get(name)), ""), 200)
