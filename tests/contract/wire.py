"""What must hold in forwarded bodies, read from their JSON alone: nothing here uses Goalkeeper's own code."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

Message = dict[str, Any]

_PART_ONE = re.compile(r"\[goalkeeper 1/2:.*?(?=\[goalkeeper 2/2:|\Z)", re.DOTALL)


def messages(body: bytes) -> list[Message]:
    """Gives the messages of a chat body."""
    found: list[Message] = json.loads(body)["messages"]
    return found


def raw_messages(body: bytes) -> list[bytes]:
    """Gives the messages of a chat body as they stand in it."""
    words = body.decode()
    place = words.index("[", words.index('"messages"')) + 1
    found = []
    while words[place:].lstrip()[0] != "]":
        place += len(words[place:]) - len(words[place:].lstrip(" ,"))
        _, end = json.JSONDecoder().raw_decode(words, place)
        found.append(words[place:end].encode())
        place = end
    return found


def text(message: Message) -> str:
    """Gives the text of a message, part by part."""
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(part.get("text", "") for part in content)
    return content or ""


def user_texts(found: Sequence[Message], without: Iterable[str] = ()) -> list[str]:
    """Gives the texts of the role user, but for those that are one of `without`."""
    left_out = set(without)
    return [text(message) for message in found if message["role"] == "user" and text(message) not in left_out]


def pairing_faults(found: Sequence[Message]) -> list[str]:
    """Gives each call that isn't answered directly behind its message, and each result without a call."""
    faults: list[str] = []
    waiting: list[str] = []
    for message in found:
        if message["role"] == "tool":
            if message["tool_call_id"] in waiting:
                waiting.remove(message["tool_call_id"])
            else:
                faults.append(f"result without call {message['tool_call_id']}")
            continue
        faults += [f"call without result {call}" for call in waiting]
        waiting = [call["id"] for call in message.get("tool_calls", [])]
    return faults + [f"call without result {call}" for call in waiting]


def users_words(found: Sequence[Message]) -> str:
    """Gives all that stands in the first part of a block of ours."""
    return "\n".join(part for words in user_texts(found) for part in _PART_ONE.findall(words))


def absent(wanted: Iterable[str], texts: Sequence[str]) -> list[str]:
    """Gives what stands in none of the texts."""
    return [one for one in wanted if not any(one in other for other in texts)]
