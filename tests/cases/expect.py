"""Holds the `expect` part of a case against the evidence."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from tests.cases import checks_body, checks_stored, checks_wire
from tests.cases.body import pairing_problems
from tests.cases.case import Run
from tests.cases.checks import run_check
from tests.cases.evidence import Evidence, Exchange
from tests.cases.faults import Malformed, Unmet, clip
from tests.cases.replies import is_model_call

OPERATION_FILES = (checks_body, checks_stored, checks_wire)  # importing them fills the table of operations
Claim = tuple[str, Callable[[], None]]


def failures(run: Run, evidence: Evidence) -> list[str]:
    """Gives a line for each expectation that doesn't hold; none means that the run passes."""
    found = list(evidence.problems)
    for name, claim in _claims(run, evidence):
        try:
            claim()
        except (Unmet, Malformed) as fault:
            found.append(f"{name}: {fault}")
        except (TypeError, ValueError, KeyError, AttributeError) as error:  # a value of a wrong type in the case
            found.append(f"{name}: malformed: {type(error).__name__} {clip(str(error))}")
    return found


def _claims(run: Run, evidence: Evidence) -> Iterator[Claim]:
    for key, value in run.case.expect.items():
        if key == "words":
            continue
        reader = READERS.get(key)
        if reader is None:
            yield key, partial(_unknown, key)
        else:
            yield from _named(key, value, reader, evidence)
    yield from _overflows(run, evidence)
    for exchange in evidence.exchanges.values():
        if exchange.label not in evidence.forwards:
            yield f"own door {exchange.label}", partial(_closed_to_browsers, exchange)
        elif not is_model_call(exchange.path):
            yield f"passage {exchange.label}", partial(_passed, evidence, exchange)


def _named(key: str, value: Any, reader: Callable[..., Iterable[Claim]], evidence: Evidence) -> Iterator[Claim]:
    try:
        yield from reader(evidence, value)
    except (TypeError, AttributeError) as error:
        yield key, partial(_malformed, str(error))


def _unknown(key: str) -> None:
    raise Malformed(f"unknown expectation {key!r}")


def _malformed(message: str) -> None:
    raise Malformed(f"malformed: {message}")


def _must_contain(evidence: Evidence, value: Mapping[str, list[str]]) -> Iterator[Claim]:
    for reference, texts in value.items():
        for text in texts:
            yield f"must_contain {reference}", partial(_contains, evidence, reference, text, wanted=True)


def _must_not_contain(evidence: Evidence, value: Mapping[str, list[str]]) -> Iterator[Claim]:
    for reference, texts in value.items():
        for text in texts:
            yield f"must_not_contain {reference}", partial(_contains, evidence, reference, text, wanted=False)


def _count(evidence: Evidence, value: Mapping[str, Mapping[str, int]]) -> Iterator[Claim]:
    for reference, texts in value.items():
        for text, times in texts.items():
            yield f"count {reference}", partial(_occurs, evidence, reference, text, times)


def _order(evidence: Evidence, value: Mapping[str, list[str]]) -> Iterator[Claim]:
    for reference, texts in value.items():
        yield f"order {reference}", partial(_ordered, evidence, reference, texts)


def _pairing(evidence: Evidence, value: list[str]) -> Iterator[Claim]:
    for reference in value:
        yield f"pairing_valid {reference}", partial(_paired, evidence, reference)


def _status(evidence: Evidence, value: Mapping[str, int]) -> Iterator[Claim]:
    for label, status in value.items():
        yield f"status {label}", partial(_answered, evidence, label, status)


def _checks(evidence: Evidence, value: list[Any]) -> Iterator[Claim]:
    for check in value:
        name = str(check.get("op")) if isinstance(check, dict) else "checks"
        yield name, partial(run_check, evidence, check)


READERS: Mapping[str, Callable[..., Iterable[Claim]]] = {
    "must_contain": _must_contain,
    "must_not_contain": _must_not_contain,
    "count": _count,
    "order": _order,
    "pairing_valid": _pairing,
    "status": _status,
    "checks": _checks,
}


def _contains(evidence: Evidence, reference: str, text: str, *, wanted: bool) -> None:
    if reference == "disk":
        places = _on_disk(evidence, text)
        if bool(places) is not wanted:
            raise Unmet(f"{clip(text)!r} stands in {places[0]}" if places else f"{clip(text)!r} stands in no file")
    elif (text in evidence.text_of(reference)) is not wanted:
        raise Unmet(f"{clip(text)!r} is {'missing' if wanted else 'there'}")


def _on_disk(evidence: Evidence, text: str) -> list[str]:
    """Gives the files that hold a text, as it is or inside a JSON text."""
    if not evidence.stored.files:
        raise Unmet("the proxy left no file")
    forms = {text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]}
    return [name for name, data in evidence.stored.files.items() if any(form.encode() in data for form in forms)]


def _occurs(evidence: Evidence, reference: str, text: str, times: int) -> None:
    seen = evidence.text_of(reference).count(text)
    if seen != times:
        raise Unmet(f"{clip(text)!r} occurs {seen} times, not {times}")


def _ordered(evidence: Evidence, reference: str, texts: list[str]) -> None:
    whole = evidence.text_of(reference)
    places = [whole.find(text) for text in texts]
    if -1 in places:
        raise Unmet(f"{clip(texts[places.index(-1)])!r} is missing")
    if places != sorted(places):
        raise Unmet(f"the texts first stand at {places}")


def _paired(evidence: Evidence, reference: str) -> None:
    problems = pairing_problems(evidence.value_of(reference))
    if problems:
        raise Unmet("; ".join(problems))


def _answered(evidence: Evidence, label: str, status: int) -> None:
    seen = evidence.exchange(label)
    if seen.status != status:
        raise Unmet(f"it is {seen.status}, not {status}: {clip(seen.body.decode('utf-8', 'replace'))}")


def _overflows(run: Run, evidence: Evidence) -> Iterator[Claim]:
    """A reply that says whether it is an overflow says how often its request is forwarded: twice or once."""
    for step in run.steps:
        if isinstance(step.get("is_overflow"), bool):
            times = 2 if step["is_overflow"] else 1
            yield f"is_overflow {step['is_overflow']}", partial(_forwarded, evidence, step["for"], times)


def _closed_to_browsers(exchange: Exchange) -> None:
    """No page of another site may read what the proxy itself answers."""
    if exchange.header("access-control-allow-origin"):
        raise Unmet("the answer carries a CORS header")


def _passed(evidence: Evidence, exchange: Exchange) -> None:
    """What is no model call goes through untouched, in both directions."""
    forward = evidence.forward(exchange.label)
    if (exchange.method, exchange.path, exchange.sent) != (forward.method, forward.path, forward.body):
        raise Unmet(f"it became {forward.method} {clip(forward.path)} with {len(forward.body)} bytes")
    if exchange.body != forward.sent:
        raise Unmet("its answer changed on the way")


def _forwarded(evidence: Evidence, label: str, times: int) -> None:
    seen = len(evidence.upstream(label))
    if seen != times:
        raise Unmet(f"{label} was forwarded {seen} times, not {times}")
