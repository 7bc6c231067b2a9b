"""Reads case files: checks their form, expands variants into runs, pads texts."""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cases.faults import Malformed, clip

Step = dict[str, Any]

CASE_KEYS = {"id", "source", "kind", "priority", "description", "endpoint", "config", "sequence", "expect"}
REPLY_KEYS = {"for", "status", "body", "raw_body", "headers", "encoding", "is_overflow", "variants"}
STEP_KEYS: Mapping[str, set[str]] = {
    "client_request": {"label", "body", "raw_body", "headers", "endpoint"},
    "upstream_reply": REPLY_KEYS,
    "upstream_sse": {"for", "chunks_hex", "raw_events", "events", "then", "headers", "status", "variants"},
}
ACTION_KEYS: Mapping[str, set[str]] = {
    "expect_retry_forward": {"label"},
    "delay_upstream": {"for", "seconds"},
    "concurrent_with": {"label"},
    "client_disconnect": {"when", "for", "label"},
    "spawn_proxies": {"count", "shared_data_dir"},
    "parallel_requests": {"sessions", "turns", "text"},
    "kill_process": {"which", "signal", "when"},
    "read_facts": set(),
    "start_proxy": {"bind", "token", "config"},
}
NEEDED: Mapping[str, set[str]] = {
    "client_request": {"label"},
    "upstream_reply": {"for"},
    "upstream_sse": {"for"},
    "expect_retry_forward": {"label"},
    "delay_upstream": {"for", "seconds"},
    "concurrent_with": {"label"},
    "client_disconnect": {"when"},
    "spawn_proxies": {"count"},
    "parallel_requests": {"sessions", "turns", "text"},
    "kill_process": {"which"},
}
FILLABLE = ("content", "text", "url", "data", "output", "arguments", "thinking", "input_text", "image_url")


@dataclass(frozen=True, slots=True)
class Case:
    """One case file."""

    id: str
    priority: str
    endpoint: str
    config: Mapping[str, Any]
    sequence: tuple[Step, ...]
    expect: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Run:
    """A case with one choice of each of its variants."""

    case: Case
    name: str  # "" when the case has no variants
    steps: tuple[Step, ...]


def read_case(path: Path) -> Case:
    """Reads a case file. Raises Malformed with the reason."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Malformed(f"not a readable JSON file: {error}") from error
    return parse_case(data)


def parse_case(data: Any) -> Case:
    """Checks the form of a case. Raises Malformed with the reason."""
    if not isinstance(data, dict):
        raise Malformed("a case is a JSON object")
    _known(data, CASE_KEYS, "case")
    for key, kind in (("id", str), ("sequence", list), ("expect", dict)):
        if not isinstance(data.get(key), kind):
            raise Malformed(f"{key!r} must be a {kind.__name__}")
    if not isinstance(data.get("config", {}), dict):
        raise Malformed("'config' must be an object")
    for number, step in enumerate(data["sequence"]):
        _check_step(step, f"sequence[{number}]")
    return Case(
        id=data["id"],
        priority=str(data.get("priority", "")),
        endpoint=str(data.get("endpoint", "/v1/chat/completions")),
        config=data.get("config", {}),
        sequence=tuple(data["sequence"]),
        expect=data["expect"],
    )


def runs_of(case: Case) -> tuple[Run, ...]:
    """Gives one run for each combination of variants; a list of moments to disconnect counts as variants."""
    choices = [list(_choices(step)) for step in case.sequence]
    runs: list[Run] = []
    for combination in itertools.product(*choices):
        names = [name for name, _ in combination if name]
        runs.append(Run(case, ", ".join(names), tuple(step for _, step in combination)))
    return tuple(runs)


def body_of(step: Step) -> bytes:
    """Gives the bytes that the client sends for a request step, padded where the case says so."""
    if "raw_body" in step:
        return str(step["raw_body"]).encode()
    if "body" not in step:
        return b""
    return json.dumps(fill(step["body"]), ensure_ascii=False).encode()


def fill(value: Any) -> Any:
    """Pads each string that stands beside `x_fill_bytes` to that many bytes and removes the key."""
    if isinstance(value, list):
        return [fill(item) for item in value]
    if not isinstance(value, dict):
        return value
    filled = {key: fill(item) for key, item in value.items() if key != "x_fill_bytes"}
    if "x_fill_bytes" not in value:
        return filled
    key = next((name for name in FILLABLE if isinstance(filled.get(name), str)), None)
    if key is None or not isinstance(value["x_fill_bytes"], int):
        raise Malformed(f"x_fill_bytes stands beside no text: {clip(json.dumps(value))}")
    missing = value["x_fill_bytes"] - len(filled[key].encode())
    filled[key] += ("A" if filled[key].startswith("data:") else "x") * max(missing, 0)
    return filled


def method_and_path(endpoint: str) -> tuple[str, str]:
    """Splits an endpoint such as `GET /v1/models`; without a method it is a POST."""
    method, _, path = endpoint.rpartition(" ")
    if not path.startswith("/"):
        raise Malformed(f"an endpoint is a path with or without a method: {endpoint!r}")
    return (method or "POST").upper(), path


def name_of(step: Step) -> str:
    """Gives a step's type, or its action when it is a control step."""
    return str(step["action"] if step["type"] == "control" else step["type"])


def steps_named(steps: Sequence[Step], name: str) -> list[Step]:
    """Gives the steps of one type or action, in order."""
    return [step for step in steps if name_of(step) == name]


def _check_step(step: Any, where: str) -> None:
    if not isinstance(step, dict) or not isinstance(step.get("type"), str):
        raise Malformed(f"{where} is no step with a type")
    if step["type"] == "control":
        action = str(step.get("action"))
        if action not in ACTION_KEYS:
            raise Malformed(f"{where}: unknown control action {action!r}")
        _known(step, ACTION_KEYS[action] | {"type", "action"}, where)
    elif step["type"] in STEP_KEYS:
        _known(step, STEP_KEYS[step["type"]] | {"type"}, where)
    else:
        raise Malformed(f"{where}: unknown step type {step['type']!r}")
    missing = NEEDED.get(name_of(step), set()) - step.keys()
    if missing:
        raise Malformed(f"{where}: {name_of(step)} needs {', '.join(sorted(missing))}")
    _check_values(step, where)


def _check_values(step: Step, where: str) -> None:
    for key in ("label", "for", "text", "endpoint", "raw_body"):
        if not isinstance(step.get(key, ""), str):
            raise Malformed(f"{where}: {key!r} must be a text")
    for key in ("sessions", "turns", "count", "which"):
        number = step.get(key, 0)
        if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number <= 1000:
            raise Malformed(f"{where}: {key!r} must be a number from 0 to 1000")
    seconds = step.get("seconds", 0)
    if not isinstance(seconds, int | float) or not 0 <= seconds <= 60:
        raise Malformed(f"{where}: 'seconds' must be a number from 0 to 60")
    status = step.get("status", 200)
    if not isinstance(status, int) or not 200 <= status <= 599:
        raise Malformed(f"{where}: 'status' must be a number from 200 to 599")
    for key in ("headers", "config"):
        if not isinstance(step.get(key, {}), dict):
            raise Malformed(f"{where}: {key!r} must be an object")
    if not all(str(part).isprintable() for pair in step.get("headers", {}).items() for part in pair):
        raise Malformed(f"{where}: a header holds control characters")
    if step.get("then", "abort") != "abort":
        raise Malformed(f"{where}: unknown 'then': {step['then']!r}")
    if step["type"] == "upstream_sse":
        _check_events(step, where)


def _check_events(step: Step, where: str) -> None:
    given = [key for key in ("chunks_hex", "raw_events", "events") if key in step]
    if len(given) != 1 and "variants" not in step:
        raise Malformed(f"{where}: upstream_sse needs one of chunks_hex, raw_events, events")
    for key in given:
        if not isinstance(step[key], list) or not all(isinstance(item, str) for item in step[key]):
            raise Malformed(f"{where}: {key} must be a list of texts")
    try:
        for chunk in step.get("chunks_hex", ()):
            bytes.fromhex(chunk)
    except ValueError as error:
        raise Malformed(f"{where}: chunks_hex: {error}") from error


def _known(data: Mapping[str, Any], keys: set[str], where: str) -> None:
    unknown = [key for key in data if key not in keys and key != "note" and not key.endswith("_note")]
    if unknown:
        raise Malformed(f"{where}: unknown key {', '.join(map(repr, unknown))}")


def _choices(step: Step) -> Iterator[tuple[str, Step]]:
    if "variants" in step:
        yield from _variants(step)
    elif name_of(step) == "client_disconnect":
        moments = step["when"] if isinstance(step["when"], list) else [step["when"]]
        for moment in moments:
            yield str(moment), {**step, "when": moment}
    else:
        yield "", step


def _variants(step: Step) -> Iterator[tuple[str, Step]]:
    variants = step["variants"]
    if not isinstance(variants, list) or not variants or not all(isinstance(one, dict) for one in variants):
        raise Malformed("variants must be a list of objects")
    # one variant that says "no overflow" declares all the others to be overflows
    declared = any("is_overflow" in variant for variant in variants)
    shared = {key: value for key, value in step.items() if key != "variants"}
    for number, variant in enumerate(variants, 1):
        chosen = copy.deepcopy({**shared, **({"is_overflow": True} if declared else {}), **variant})
        _check_step(chosen, f"variant {number}")
        hints = [str(chosen[key]) for key in ("status", "encoding") if key in chosen]
        yield f"variant {number}/{len(variants)}" + (f" ({' '.join(hints)})" if hints else ""), chosen
