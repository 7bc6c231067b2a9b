"""The JSON Schema of client profiles, for editors; made of the tables by which they are read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from proxy.clients.loading import MATCH, SESSION, SIDE, TOP

_PATTERNS = "Regular expressions of Python's re; case is ignored, a dot matches line feeds."
_TEXTS: dict[str, Any] = {"type": "array", "items": {"type": "string", "minLength": 1}}
_FLAG: dict[str, Any] = {"type": "boolean"}

# what the keys hold that aren't a plain list of texts, and what all of them are for; the reader says which there are
_WORDS = {
    "name": "The profile's name.",
    "match": "How the client is recognised: all kinds that are given must fit, one entry of each is enough.",
    "session": "Where the client writes the id of its conversation; earlier names win.",
    "side": "Calls that don't carry the conversation on.",
    "quotes": "The client wraps an argument in double quotes.",
    "tags": "XML-like wrappers of machine text.",
    "machine": "Openings of texts that machines write in the role user.",
    "synthetic": "Whole texts that the client itself says in the user's name.",
    "nudges": "The same, only as the first user text of a body that begins with the assistant.",
    "summaries": "Openings of the client's own compaction summary.",
    "cuts": "Openings of the note that the client leaves where it cut its history without a summary.",
    "answer_tools": "Tools whose result is the user's own answer.",
    "denials": f"Openings of a refusal; what follows are the user's words. {_PATTERNS}",
    "midturn": f"A person's words behind a tool result: group 1. {_PATTERNS}",
    "templates": f"Whole texts that the client writes around a person's words: group 1. {_PATTERNS}",
    "user_agent": _PATTERNS,
    "headers": "Names of request headers.",
    "system": f"In the system text. {_PATTERNS}",
    "body": "Names of fields of the request body.",
    "agent": "Headers with the id of a sub-agent.",
    "parent": "Headers with the id of the conversation that started this one.",
    "summarise_last": f"In the last user text of a call that asks for a summary of the conversation. {_PATTERNS}",
    "summarise_system": f"In the system text of such a call. {_PATTERNS}",
    "title": f"In the last user text of a call for a title. {_PATTERNS}",
    "other": f"In the last user text of other calls that the client makes for itself. {_PATTERNS}",
    "flat": "Marks of a call that carries the whole conversation as one text.",
    "keeps_tail": "After its summary the client keeps its newest messages.",
}


def profile_schema() -> dict[str, Any]:
    """Gives the schema of a profile file."""
    parts = {"match": _table(MATCH), "session": _table(SESSION), "side": _table(SIDE)}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Goalkeeper: a client profile",
        "required": ["name"],
        **_table(TOP, parts),
    }


def _table(keys: Sequence[str], parts: dict[str, dict[str, Any]] | None = None) -> dict[str, Any]:
    kinds = {"name": {"type": "string", "minLength": 1}, "quotes": _FLAG, "keeps_tail": _FLAG, **(parts or {})}
    told = {key: {"description": _WORDS[key]} if key in _WORDS else {} for key in keys}
    properties = {key: {**kinds.get(key, _TEXTS), **told[key]} for key in keys}
    return {"type": "object", "additionalProperties": False, "properties": properties}
