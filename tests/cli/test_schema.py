"""The schemas for editors: current, and of one mind with the readers of the files."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
import yaml

from proxy.cli.main import main
from proxy.cli.schema import SCHEMAS, schema_text
from proxy.clients.loading import MATCH, SESSION, SIDE, TOP
from proxy.clients.schema import profile_schema
from proxy.pins.reading import KEYS
from proxy.pins.schema import rule_schema
from proxy.settings import packaged_folder

CONFIG = packaged_folder()


def faults(what: str, value: Any) -> list[str]:
    schema = SCHEMAS[what]()
    checker = jsonschema.validators.validator_for(schema)
    checker.check_schema(schema)
    return [error.message for error in checker(schema).iter_errors(value)]


@pytest.mark.parametrize("what", SCHEMAS)
def test_the_committed_schema_is_current(what, capsys):
    assert main(["schema", what]) == 0
    assert capsys.readouterr().out == schema_text(what)
    assert (CONFIG / "schema" / f"{what}.json").read_text("utf-8") == schema_text(what), "run: make schema"


@pytest.mark.parametrize(
    ("what", "name"),
    [("rules", "pins.yaml"), ("settings", "goalkeeper.yaml")]
    + [("profiles", f"clients/{file.name}") for file in sorted((CONFIG / "clients").glob("*.yaml"))],
)
def test_each_packaged_file_fits_its_schema_and_names_it(what, name):
    text = (CONFIG / name).read_text("utf-8")
    assert faults(what, yaml.safe_load(text)) == []
    first = text.partition("\n")[0].removeprefix("# yaml-language-server: $schema=")
    assert ((CONFIG / name).parent / first).resolve() == (CONFIG / "schema" / f"{what}.json").resolve()


@pytest.mark.parametrize(
    ("what", "value"),
    [
        ("rules", {"rules": [{"name": "n", "kind": "fakt", "patterns": ["x"]}]}),
        ("rules", {"rules": [{"name": "n", "kind": "fact", "pattern": ["x"]}]}),
        ("rules", {"rules": [{"name": "n", "kind": "history", "patterns": ["x"]}]}),
        ("rules", {"rules": [{"kind": "fact", "patterns": ["x"]}]}),
        ("profiles", {"match": {}}),
        ("profiles", {"name": "n", "side": {"tittle": []}}),
        ("settings", {"mode": "fulll"}),
        ("settings", {"pins": {"rules": [{"name": "n", "kind": "fakt"}]}}),
        ("settings", {"bugdet": 1}),
    ],
)
def test_what_the_reader_refuses_the_schema_underlines(what, value):
    assert len(faults(what, value)) >= 1


def test_an_act_on_older_pins_needs_no_kind_and_one_pattern_may_stand_alone():
    assert faults("rules", {"rules": [{"name": "n", "label": "retract", "patterns": "x"}]}) == []


def test_every_key_is_explained():
    rules, profile = rule_schema()["properties"], profile_schema()["properties"]
    assert [key for key in KEYS if "description" not in rules[key]] == []
    assert [key for key in TOP if "description" not in profile[key]] == []
    for part, keys in (("match", MATCH), ("session", SESSION), ("side", SIDE)):
        assert [key for key in keys if "description" not in profile[part]["properties"][key]] == []
