"""Checks on the transport: what the client received against what the fake model sent, and refused starts."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tests.cases.checks import operation
from tests.cases.encodings import decode
from tests.cases.evidence import Evidence, Exchange
from tests.cases.faults import Malformed, Unmet, clip
from tests.cases.mapping import own_key


@operation
def forward_count_max(evidence: Evidence, for_: str, max: int) -> None:  # noqa: A002 (the case's own word)
    """The fake model got the request at most so often."""
    seen = len(evidence.upstream(for_))
    if seen > max:
        raise Unmet(f"{for_} was forwarded {seen} times, more than {max}")


@operation
def no_request_to(evidence: Evidence, host: str) -> None:
    """No request reached that host."""
    asked = [forward for many in evidence.forwards.values() for forward in many if _host(forward.headers) == host]
    if asked or evidence.decoys.get(host):
        raise Unmet(f"a request went to {host}")


@operation
def upstream_closed_within(evidence: Evidence, seconds: float) -> None:
    """Each request that the client left ended at the fake model within this time."""
    left = [exchange for exchange in evidence.exchanges.values() if exchange.left_at]
    if not left:
        raise Malformed("upstream_closed_within: the client never left")
    for exchange in left:
        closed = evidence.forward(exchange.label).closed_at
        if not closed:
            raise Unmet(f"the upstream call of {exchange.label} wasn't ended")
        if closed - exchange.left_at > seconds:
            raise Unmet(f"the upstream call of {exchange.label} ended after {closed - exchange.left_at:.2f} s")


@operation
def client_bytes_equal_upstream(evidence: Evidence, for_: str) -> None:
    """The client received the very bytes that the fake model sent."""
    evidence.forward(for_)
    sent, got = evidence.upstream(for_)[-1].sent, evidence.exchange(for_).body
    if sent != got:
        raise Unmet(
            f"the client got {len(got)} bytes, the upstream sent {len(sent)}: {clip(got.decode('utf-8', 'replace'))}"
        )


@operation
def client_can_decode(evidence: Evidence, for_: str) -> None:
    """The client can undo the encoding that the headers name, and then has the model's answer; the length is right."""
    evidence.forward(for_)
    exchange = evidence.exchange(for_)
    if exchange.fault:
        raise Unmet(f"the client couldn't read the answer: {exchange.fault}")
    length = exchange.header("content-length")
    if length and length != str(len(exchange.body)):
        raise Unmet(f"content-length is {length}, the body has {len(exchange.body)} bytes")
    if decode(exchange.body, exchange.header("content-encoding")) != evidence.upstream(for_)[-1].plain:
        raise Unmet("the decoded answer isn't the model's")


@operation
def status_equal_upstream(evidence: Evidence) -> None:
    """Each model request reached the fake model, and the client got its status."""
    for exchange in _model_requests(evidence):
        evidence.forward(exchange.label)
        sent = evidence.upstream(exchange.label)[-1].status
        if exchange.status != sent:
            raise Unmet(f"{exchange.label} got status {exchange.status}, the upstream sent {sent}")


@operation
def error_passthrough_unchanged(evidence: Evidence) -> None:
    """Where the fake model's last word was an error, the client got its status and bytes."""
    seen = 0
    for exchange in _model_requests(evidence):
        answers = evidence.upstream(exchange.label)
        if not answers or answers[-1].status < 400:
            continue
        seen += 1
        if (exchange.status, exchange.body) != (answers[-1].status, answers[-1].sent):
            got = clip(exchange.body.decode("utf-8", "replace"))
            raise Unmet(f"the error of {exchange.label} changed: status {exchange.status}, {got}")
    if not seen:
        raise Unmet("the upstream's last answer was no error")


@operation
def count_in_stream(evidence: Evidence, for_: str, text: str, equals: int) -> None:
    """The text occurs so often in the client's stream."""
    seen = evidence.text_of(f"client_stream:{for_}").count(text)
    if seen != equals:
        raise Unmet(f"{text!r} occurs {seen} times in the stream of {for_}, not {equals}")


@operation
def sse_comments_min(evidence: Evidence, for_: str, min: int) -> None:  # noqa: A002 (the case's own word)
    """So many comment lines came, none inside an event and none after the end of the stream."""
    comments, inside, ended = 0, False, False
    for line in re.split(r"\r\n|\n|\r", evidence.text_of(f"client_stream:{for_}")):
        if line.startswith(":"):
            comments += 1
            if inside or ended:
                raise Unmet(f"a comment line stands {'inside an event' if inside else 'after the end'}")
        inside = bool(line) and (inside or not line.startswith(":"))
        ended = ended or line == "data: [DONE]"
    if comments < min:
        raise Unmet(f"{comments} comment lines in the stream of {for_}, fewer than {min}")


@operation
def start_refused(evidence: Evidence) -> None:
    """Every start that the case asks for ended with an exit code other than zero."""
    if not evidence.starts:
        raise Malformed("start_refused: the case starts no proxy")
    for number, start in enumerate(evidence.starts, 1):
        if not start.refused:
            raise Unmet(f"start {number} wasn't refused: {clip(start.output)}")


@operation
def error_names_key(evidence: Evidence, keys: Sequence[str]) -> None:
    """The message of a refused start names each key, in our words for it."""
    messages = "\n".join(start.output for start in evidence.starts if start.refused)
    for key in keys:
        if re.search(rf"(?<!\w){re.escape(own_key(key))}(?!\w)", messages) is None:
            raise Unmet(f"no message names {own_key(key)} ({key}): {clip(messages)}")


def _model_requests(evidence: Evidence) -> list[Exchange]:
    return [one for one in evidence.exchanges.values() if "/v1" in one.path and not one.left_at]


def _host(headers: object) -> str:
    pairs = headers.items() if hasattr(headers, "items") else ()
    value = next((text for name, text in pairs if name.lower() == "host"), "")
    return str(value).rsplit(":", 1)[0]
