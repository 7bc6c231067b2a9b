"""The JSON Schema of rule files, for editors; made of the tables by which they are read."""

from __future__ import annotations

from typing import Any

from proxy.pins.reading import KEYS, KINDS, LABELS
from proxy.pins.regexps import FLAGS
from proxy.pins.rule import ACTS, PASSING, SCOPES

DRAFT = "http://json-schema.org/draft-07/schema#"
_LIST: dict[str, Any] = {"type": "array", "items": {"type": "string"}}
_TEXTS: dict[str, Any] = {  # an alias of another list may stand inside a list
    "anyOf": [{"type": "string"}, {"type": "array", "items": {"anyOf": [{"type": "string"}, _LIST]}}]
}

# what each key holds; which keys there are, the reader says
_HOLDS: dict[str, dict[str, Any]] = {
    "name": {"type": "string", "minLength": 1, "description": "What `pins list` and facts show; the name of an earlier "
             "file's rule replaces that rule."},
    "kind": {"enum": list(KINDS), "description": "What the turn is. Without a kind the rule only says, by its label, "
             "what the words do to older pins."},
    "label": {"enum": list(LABELS), "description": "With `history`: what passes by. Without a kind: the effect on "
              "older pins."},
    "scope": {"enum": list(SCOPES), "default": "session", "description": "`once` is gone with the next order."},
    "priority": {"type": "integer", "default": 50, "description": "Of all rules that match, the highest decides."},
    "phrases": {**_TEXTS, "description": "Phrases with | between them; the rule matches a turn that consists of them."},
    "beside": {**_TEXTS, "description": "Words that may stand beside `phrases`, but make up no turn by themselves."},
    "patterns": {**_TEXTS, "description": "Regular expressions of Python's re; one must occur in the turn."},
    "not": {**_TEXTS, "description": "Regular expressions that keep the rule silent."},
    "flags": {"type": "string", "pattern": f"^[{''.join(FLAGS)}]*$", "default": "i", "description": "i: ignore case, "
              "m: line by line, s: dot matches line feeds."},
    "roles": {"anyOf": [{"enum": ["user", "tool"]}, {"type": "array", "items": {"enum": ["user", "tool"]}}],
              "description": "`tool`: a person's words inside a tool result. Both by default."},
    "clients": {**_TEXTS, "description": "Names of client profiles, * allowed; all by default."},
    "examples": {
        "type": "object",
        "additionalProperties": False,
        "description": "`goalkeeper check` runs them.",
        "properties": {
            "match": {**_TEXTS, "description": "Turns that this rule must decide."},
            "no_match": {**_TEXTS, "description": "Turns that it must leave alone."},
        },
    },
}  # fmt: skip


def rule_schema() -> dict[str, Any]:
    """Gives the schema of one rule."""
    return {
        "type": "object",
        "additionalProperties": False,
        "required": ["name"],
        "properties": {key: _HOLDS.get(key, {}) for key in KEYS},
        "anyOf": [
            {"required": ["kind"], "properties": {"kind": {"not": {"const": "history"}}}},
            {
                "required": ["kind", "label"],
                "properties": {"kind": {"const": "history"}, "label": {"enum": [*PASSING]}},
            },
            {"required": ["label"], "properties": {"label": {"enum": list(ACTS)}}},
        ],
    }


def rule_file_schema() -> dict[str, Any]:
    """Gives the schema of a rule file."""
    return {
        "$schema": DRAFT,
        "title": "Goalkeeper: pin rules",
        "type": ["object", "null"],
        "additionalProperties": False,
        "properties": {"rules": {"type": ["array", "null"], "items": rule_schema()}},
    }
