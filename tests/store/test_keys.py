"""The key file."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from proxy.errors import StoreError
from proxy.store.ids import new_ulid
from proxy.store.keys import key_path, load_key, read_key


def test_key_is_made_once_for_the_owner_alone(tmp_path: Path) -> None:
    path = key_path({"XDG_CONFIG_HOME": str(tmp_path)})
    assert path == tmp_path / "goalkeeper" / "seal.key"
    assert read_key(path, {}) is None
    key = load_key(path, {})
    assert len(key) == 32
    assert load_key(path, {}) == key
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [file.name for file in path.parent.iterdir()] == ["seal.key"]


def test_key_from_the_environment_needs_no_file(tmp_path: Path) -> None:
    path = tmp_path / "seal.key"
    assert load_key(path, {"GOALKEEPER_SEAL_KEY": "words"}) == load_key(path, {"GOALKEEPER_SEAL_KEY": "words"})
    assert not path.exists()


def test_broken_key_file_is_told_by_name(tmp_path: Path) -> None:
    path = tmp_path / "seal.key"
    path.write_text("nonsense")
    with pytest.raises(StoreError, match=r"seal\.key"):
        load_key(path, {})


def test_ulids_sort_by_the_order_in_which_they_were_made() -> None:
    made = [new_ulid() for _ in range(2000)]
    assert sorted(set(made)) == made
    assert {len(one) for one in made} == {26}
