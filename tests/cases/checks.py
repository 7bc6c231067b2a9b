"""The table of check operations: each raises Unmet when it doesn't hold.

An operation is a function of the evidence and of the keys that stand beside `op` in the case (`in` and `for` get an
underscore). A check with an unknown operation, an unknown key or a missing one is malformed, never a pass.
"""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Callable
from typing import Any

from tests.cases.evidence import Evidence
from tests.cases.faults import Malformed

Operation = Callable[..., None]
OPERATIONS: dict[str, Operation] = {}


def operation(function: Operation) -> Operation:
    """Enters a function into the table under its own name."""
    OPERATIONS[function.__name__] = function
    return function


def run_check(evidence: Evidence, check: Any) -> None:
    """Runs one entry of `checks`. Raises Unmet when it doesn't hold, Malformed when it can't be run."""
    if not isinstance(check, dict) or not isinstance(check.get("op"), str):
        raise Malformed("a check is an object with an op")
    function = OPERATIONS.get(check["op"])
    if function is None:
        raise Malformed(f"unknown operation {check['op']!r}")
    words = {
        f"{key}_" if keyword.iskeyword(key) else key: value
        for key, value in check.items()
        if key not in ("op", "note") and not key.endswith("_note")
    }
    try:
        inspect.signature(function).bind(evidence, **words)
    except TypeError as error:
        raise Malformed(f"{check['op']}: {error}") from None
    function(evidence, **words)
