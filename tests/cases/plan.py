"""Turns the steps of a run into what the fake model does and into requests in their order."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.cases.case import Case, Run, Step, body_of, method_and_path, name_of, steps_named
from tests.cases.faults import Malformed
from tests.cases.upstream import LABEL, SUMMARY, Script

_AFTER_EVENTS = re.compile(r"after_(\d+)_events?")
PROBE = {"model": "demo-1", "messages": [{"role": "user", "content": "ping"}]}


@dataclass(slots=True)
class Request:
    """One request that the client is going to send."""

    label: str
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    leave: str = ""  # the moment at which the client closes the connection, "" = it doesn't
    overlapped: bool = False  # later steps run while it waits


@dataclass(slots=True)
class Plan:
    """What a run does."""

    script: Script
    requests: dict[str, Request] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)  # label of a retry → label of its request
    probes: tuple[str, ...] = ()  # labels that have a reply and no request: a plain request is sent at the end


def plan_of(run: Run) -> Plan:
    """Looks through all steps. Raises Malformed when a step names a label that doesn't exist."""
    script = Script(decoys=_decoys(run.case))
    plan = Plan(script)
    previous = ""
    for number, step in enumerate(run.steps):
        name = name_of(step)
        if name == "client_request":
            previous = step["label"]
            if previous in plan.requests:
                raise Malformed(f"two requests are called {previous!r}")
            plan.requests[previous] = request_of(run.case, step)
            plan.requests[previous].overlapped = _killed_meanwhile(run.steps[number + 1 :])
        elif name == "client_disconnect":
            _leave(plan, step, previous)
        elif name == "expect_retry_forward":
            named = step["label"].removesuffix("-retry")
            plan.aliases[step["label"]] = named if named in plan.requests else previous
        elif name == "delay_upstream":
            script.delays[step["for"]] = float(step["seconds"])
    _replies(run, plan)
    _overlaps(run, plan)
    return plan


def request_of(case: Case, step: Step) -> Request:
    """Gives the request of a step: own endpoint or the case's, headers with the label, padded body."""
    method, path = method_and_path(step.get("endpoint", case.endpoint))
    headers = {str(name): str(value) for name, value in step.get("headers", {}).items()} | {LABEL: step["label"]}
    empty = method in ("GET", "HEAD", "DELETE") and not step.get("body") and "raw_body" not in step
    body = b"" if empty else body_of(step)
    if body and not any(name.lower() == "content-type" for name in headers):
        headers["content-type"] = "application/json"
    return Request(step["label"], method, path, headers, body)


def probe_of(case: Case, label: str) -> Request:
    """Gives the plain request that is sent for a reply which no request of the case asks for."""
    return request_of(case, {"type": "client_request", "label": label, "body": PROBE})


def _decoys(case: Case) -> tuple[str, ...]:
    checks = case.expect.get("checks", [])
    entries = checks if isinstance(checks, list) else []
    return tuple(
        str(check["host"])
        for check in entries
        if isinstance(check, dict) and check.get("op") == "no_request_to" and "host" in check
    )


def _killed_meanwhile(rest: Sequence[Step]) -> bool:
    return bool(rest) and name_of(rest[0]) == "kill_process" and rest[0].get("when") == "during_write"


def _leave(plan: Plan, step: Step, previous: str) -> None:
    label = str(step.get("for", step.get("label", previous)))
    request = _request(plan, label, "client_disconnect")
    moment = str(step["when"])
    events = _AFTER_EVENTS.fullmatch(moment)
    if events is None and moment not in ("before_first_byte", "non_stream_wait"):
        raise Malformed(f"client_disconnect: unknown moment {moment!r}")
    if moment == "non_stream_wait":
        request.body = request.body.replace(b'"stream": true', b'"stream": false')
    request.leave = moment
    plan.script.leaves[label] = int(events[1]) if events is not None else 0


def _replies(run: Run, plan: Plan) -> None:
    probes: dict[str, None] = {}
    for step in (*steps_named(run.steps, "upstream_reply"), *steps_named(run.steps, "upstream_sse")):
        label = step["for"]
        plan.script.replies[label] = step
        if plan.aliases.get(label, label).removesuffix(SUMMARY) not in plan.requests:
            probes[label] = None
    plan.probes = tuple(probes)


def _overlaps(run: Run, plan: Plan) -> None:
    """Makes sure that a request which others overlap really waits: by its own delay, else by a gate."""
    for step in steps_named(run.steps, "concurrent_with"):
        label = step["label"]
        _request(plan, label, "concurrent_with").overlapped = True
        if not {label, label + SUMMARY} & plan.script.delays.keys():
            plan.script.gates[label] = asyncio.Event()


def _request(plan: Plan, label: str, action: str) -> Request:
    if label not in plan.requests:
        raise Malformed(f"{action}: no request is called {label!r} before it")
    return plan.requests[label]


def settings_for(neutral: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Joins the case's settings, already in our words, with those of the run (upstream, data folder)."""
    joined = dict(neutral)
    for key, value in own.items():
        before = joined.get(key)
        joined[key] = {**before, **value} if isinstance(before, dict) and isinstance(value, dict) else value
    return joined
