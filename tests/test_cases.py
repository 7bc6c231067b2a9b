"""Small sequences made from public fault reports, each played against a real proxy process."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases.case import read_case
from tests.cases.runner import run_case

DATA = Path(__file__).parent / "cases" / "data"


@pytest.mark.parametrize("path", sorted(DATA.glob("*.json")), ids=lambda path: path.stem)
def test_a_case_from_the_field_holds(path: Path) -> None:
    result = run_case(read_case(path))
    assert result.passed, result.line
