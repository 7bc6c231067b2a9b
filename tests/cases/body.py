"""Reads request bodies of the three dialects: texts, items, calls, results, raw slices."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

Json = Any
LISTS = ("messages", "input")
_BLANKS = " \t\r\n"


def value_of(body: bytes) -> Json:
    """Gives the JSON value of a body, or its text when it isn't JSON."""
    try:
        return json.loads(body)
    except ValueError:
        return body.decode("utf-8", "replace")


def strings(value: Json) -> Iterator[str]:
    """Gives every string value of a JSON value, in order; keys are not among them."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)


def text_of(value: Json) -> str:
    """Gives all string values, one after the other."""
    return "\n".join(strings(value))


def occurrences(value: Json, key: str) -> int:
    """Counts how often an object has this key, at any depth."""
    if isinstance(value, dict):
        return (key in value) + sum(occurrences(item, key) for item in value.values())
    if isinstance(value, list):
        return sum(occurrences(item, key) for item in value)
    return 0


def items(value: Json) -> list[dict[str, Json]]:
    """Gives the messages or input items of a request; a bare text counts as one user message."""
    for key in LISTS:
        found = value.get(key) if isinstance(value, dict) else None
        if isinstance(found, str):
            return [{"role": "user", "content": found}]
        if isinstance(found, list):
            return [item for item in found if isinstance(item, dict)]
    return []


def raw_items(body: bytes) -> list[str]:
    """Gives the messages or input items as the exact texts that stand in the body."""
    text = body.decode("utf-8", "replace")
    place = _skip(text, 0)
    if text[place : place + 1] != "{":
        return []
    place = _skip(text, place + 1)
    while text[place : place + 1] == '"':
        key, place = json.decoder.scanstring(text, place + 1)  # type: ignore[attr-defined]
        place = _skip(text, _skip(text, place) + 1)
        if key in LISTS and text[place : place + 1] == "[":
            return list(_slices(text, place + 1))
        place = _skip(text, json.JSONDecoder().raw_decode(text, place)[1])
        place = _skip(text, place + (text[place : place + 1] == ","))
    return []


def message_texts(item: dict[str, Json]) -> list[str]:
    """Gives the text parts of one message, results of tools left out."""
    content = item.get("content")
    if isinstance(content, str):
        return [content]
    parts = content if isinstance(content, list) else []
    return [part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)]


def user_texts(value: Json) -> list[str]:
    """Gives each text part that stands in the role user, in order."""
    return [text for item in items(value) if item.get("role") == "user" for text in message_texts(item)]


def system_text(value: Json) -> str:
    """Gives the system text of a request, wherever its dialect puts it."""
    if not isinstance(value, dict):
        return ""
    texts = [*strings(value.get("system")), *strings(value.get("instructions"))]
    for item in items(value):
        if item.get("role") not in ("system", "developer"):
            break
        texts.extend(message_texts(item))
    return "\n".join(texts)


def calls_of(item: dict[str, Json]) -> list[str]:
    """Gives the ids of the tool calls that a message or item makes."""
    kind = str(item.get("type", ""))
    if kind.endswith("_call") and "call_id" in item:
        return [item["call_id"]]
    calls = [call.get("id", "") for call in item.get("tool_calls") or () if isinstance(call, dict)]
    return calls + [part.get("id", "") for part in _parts(item) if part.get("type") == "tool_use"]


def results_of(item: dict[str, Json]) -> list[tuple[str, str]]:
    """Gives call id and text of each tool result that a message or item carries."""
    if str(item.get("type", "")).endswith("_call_output"):
        return [(item.get("call_id", ""), text_of(item.get("output")))]
    if item.get("role") == "tool":
        return [(item.get("tool_call_id", ""), "\n".join(message_texts(item)))]
    parts = [part for part in _parts(item) if part.get("type") == "tool_result"]
    return [(part.get("tool_use_id", ""), _result_text(part)) for part in parts]


def all_results(value: Json) -> list[tuple[str, str]]:
    """Gives call id and text of every tool result of a request, in order."""
    return [result for item in items(value) for result in results_of(item)]


def pairing_problems(value: Json) -> list[str]:
    """Tells which calls and results of a request don't match; in messages results follow their calls at once."""
    adjacent = not (isinstance(value, dict) and "input" in value)
    waiting: list[str] = []
    problems: list[str] = []
    for item in items(value):
        answered = [call for call, _ in results_of(item)]
        for call in answered:
            if call in waiting:
                waiting.remove(call)
            else:
                problems.append(f"a result without its call: {call}")
        if adjacent and not answered:
            problems.extend(_unanswered(waiting))
            waiting = []
        waiting.extend(calls_of(item))
    return problems + _unanswered(waiting)


def newest_open_call(value: Json) -> str:
    """Gives the id of the last call that a request makes or answers, "" without one."""
    made = [call for item in items(value) for call in calls_of(item)]
    return made[-1] if made else ""


def places_of(value: Json, ids: Sequence[str]) -> list[int | None]:
    """Gives the index of the item that carries each id (own id, call, result), None where it is absent."""
    names = [_names(item) for item in items(value)]
    return [next((place for place, known in enumerate(names) if one in known), None) for one in ids]


def _names(item: dict[str, Json]) -> set[str]:
    own = {str(item[key]) for key in ("id", "tool_call_id") if key in item}
    parts = {str(part["id"]) for part in _parts(item) if "id" in part}
    calls = set(calls_of(item)) if "id" not in item else set()
    return own | parts | calls | {call for call, _ in results_of(item)}


def _parts(item: dict[str, Json]) -> list[dict[str, Json]]:
    content = item.get("content")
    return [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []


def _result_text(part: dict[str, Json]) -> str:
    content = part.get("content", "")
    return content if isinstance(content, str) else "\n".join(message_texts({"content": content}))


def _unanswered(waiting: Sequence[str]) -> list[str]:
    return [f"a call without its result: {call}" for call in waiting]


def _skip(text: str, place: int) -> int:
    while text[place : place + 1] in _BLANKS and place < len(text):
        place += 1
    return place


def _slices(text: str, place: int) -> Iterator[str]:
    decoder = json.JSONDecoder()
    place = _skip(text, place)
    while place < len(text) and text[place] != "]":
        end = decoder.raw_decode(text, place)[1]
        yield text[place:end]
        place = _skip(text, end)
        place = _skip(text, place + (text[place : place + 1] == ","))
