"""`goalkeeper schema`: the JSON Schema of rule files, client profiles and settings, for editors."""

from __future__ import annotations

import argparse
import json
from typing import Any

import yaml

from proxy.clients.schema import profile_schema
from proxy.pins.schema import rule_file_schema, rule_schema
from proxy.settings import Settings, packaged_folder

_NEWER = "https://json-schema.org/draft/2020-12/schema"  # what pydantic writes


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds which one."""
    parser.add_argument("what", choices=tuple(SCHEMAS), help="whose schema")
    parser.add_argument("--json", action="store_true", help="print JSON (as it does anyway)")


def run(args: argparse.Namespace) -> int:
    """Prints it."""
    print(schema_text(args.what), end="")
    return 0


def schema_text(what: str) -> str:
    """Gives a schema as it is printed, and as it lies in config/schema."""
    return json.dumps(SCHEMAS[what](), indent=2) + "\n"


def settings_schema() -> dict[str, Any]:
    """Gives the schema of settings files: the model's own, with the words of the packaged file on each key."""
    schema = Settings.model_json_schema()
    text = (packaged_folder() / "goalkeeper.yaml").read_text("utf-8")
    _describe(schema, schema, yaml.compose(text, Loader=yaml.SafeLoader), text.split("\n"))
    schema["$defs"]["Pins"]["properties"]["rules"]["items"] = rule_schema()
    return {"$schema": _NEWER, **schema, "title": "Goalkeeper: settings"}


def _describe(schema: dict[str, Any], group: dict[str, Any], node: yaml.Node | None, lines: list[str]) -> None:
    """Puts the comment above each key of the packaged file into the schema of that key."""
    for key, value in node.value if isinstance(node, yaml.MappingNode) else ():
        property_ = group["properties"].get(key.value, {})
        above = _comment_above(lines, key.start_mark.line)
        if above:
            property_["description"] = above
        if "$ref" in property_:
            _describe(schema, schema["$defs"][property_["$ref"].rpartition("/")[2]], value, lines)


def _comment_above(lines: list[str], place: int) -> str:
    found: list[str] = []
    while place and lines[place - 1].lstrip().startswith("#"):
        place -= 1
        found.insert(0, lines[place].lstrip().removeprefix("#").removeprefix(" "))
    return "\n".join(found)


SCHEMAS = {"rules": rule_file_schema, "profiles": profile_schema, "settings": settings_schema}
