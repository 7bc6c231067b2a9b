"""Counters and the log."""

from __future__ import annotations

import io
import json
import os

import pytest

from proxy.telemetry import Counters, Log, masked


def test_zero_is_shown_as_zero_and_labels_are_escaped():
    counters = Counters()
    counters.add("requests_total", 'od"d\n')
    counters.add("tokens_saved_total", by=40)
    counters.add("tokens_saved_total", by=2)
    lines = counters.render().split("\n")
    assert "goalkeeper_compactions_total 0" in lines
    assert "goalkeeper_tokens_saved_total 42" in lines
    assert 'goalkeeper_requests_total{relation="od\\"d\\n"} 1' in lines


def test_a_counter_that_is_not_declared_can_not_be_counted():
    with pytest.raises(KeyError):
        Counters().add("surprise_total")
    with pytest.raises(ValueError, match="relation"):
        Counters().add("requests_total")


def test_the_log_writes_one_json_line_an_event_and_no_control_character():
    stream = io.StringIO()
    log = Log(stream)
    log.info("request", session="s\x1b[31m1", status=200)
    log.close()
    (line,) = stream.getvalue().strip().split("\n")
    entry = json.loads(line)
    assert (entry["event"], entry["session"], entry["status"], entry["level"]) == ("request", "s\x1b[31m1", 200, "info")
    assert "\x1b" not in line


def test_credentials_are_masked():
    headers = [("Authorization", "Bearer k"), ("X-Api-Key", "k"), ("Cookie", "k"), ("X-Request-Id", "r")]
    assert [value for _, value in masked(headers)] == ["[masked]", "[masked]", "[masked]", "r"]


def test_a_log_that_nobody_reads_drops_lines_and_holds_nobody_up():
    reader, writer = os.pipe()
    with os.fdopen(writer, "w") as stream:
        log = Log(stream)
        for number in range(30_000):
            log.info("request", number=number)
        assert log.dropped > 0
        while log._thread.is_alive():
            os.read(reader, 1 << 20)
            log.close(0.01)
    os.close(reader)
