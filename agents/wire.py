"""Reads request bodies of the three APIs from their JSON alone: nothing here uses Goalkeeper's own code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Body = dict[str, Any]
Item = dict[str, Any]

APIS = {
    "/v1/chat/completions": "chat",
    "/v1/responses": "responses",
    "/v1/responses/compact": "compact",
    "/v1/messages": "messages",
}
SYSTEM_ROLES = ("system", "developer")


@dataclass(frozen=True, slots=True)
class Turn:
    """One message or item: its role (an item's type where it has none) and all its text."""

    role: str
    text: str


def items(body: Body) -> list[Item]:
    """Gives the list of messages or input items."""
    found: Any = body.get("messages") or body.get("input") or []
    return [{"role": "user", "content": found}] if isinstance(found, str) else list(found)


def turns(body: Body) -> list[Turn]:
    """Gives each message with its text, results of tools included."""
    return [Turn(str(item.get("role") or item.get("type")), text(item)) for item in items(body)]


def text(value: object) -> str:
    """Gives the text in a content field, a part, or an item."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(text(one) for one in value)
    if isinstance(value, dict):
        return text(next((value[name] for name in ("text", "content", "output") if value.get(name)), ""))
    return ""


def system(body: Body) -> str:
    """Gives the system text, wherever the API keeps it."""
    own = [text(body.get("system")), text(body.get("instructions"))]
    return "\n".join([*own, *(turn.text for turn in turns(body) if turn.role in SYSTEM_ROLES)])


def users(body: Body) -> list[str]:
    """Gives the texts of the role user, part by part."""
    found: list[str] = []
    for item in items(body):
        if item.get("role") != "user":
            continue
        content = item.get("content")
        found += [text(part) for part in content] if isinstance(content, list) else [text(content)]
    return found


def results(body: Body) -> list[str]:
    """Gives what tools returned."""
    found = [text(item) for item in items(body) if item.get("role") == "tool" or "output" in str(item.get("type"))]
    blocks = [part for item in items(body) if isinstance(item.get("content"), list) for part in item["content"]]
    return found + [text(part) for part in blocks if isinstance(part, dict) and part.get("type") == "tool_result"]


def namespace(body: Body, name: str) -> str:
    """Gives the group of tools that one is listed in, "" for one that stands by itself."""
    groups = [tool for tool in body.get("tools") or [] if tool.get("tools")]
    return next((str(one["name"]) for one in groups if any(tool.get("name") == name for tool in one["tools"])), "")


def tools(body: Body) -> dict[str, Item]:
    """Gives the schema of each tool by its name."""
    found = {}
    listed = [one for tool in body.get("tools") or [] for one in (tool.get("tools") or [tool])]  # codex groups some
    for tool in listed:
        inner = tool.get("function") or tool
        found[str(inner.get("name") or inner.get("type"))] = inner.get("parameters") or inner.get("input_schema") or {}
    return found
