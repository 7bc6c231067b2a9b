"""Side calls: requests that carry no conversation on, but ask for a title, a summary or a probe."""

from __future__ import annotations

import json
import re

import msgspec

from proxy.transcript import Message, Transcript

PROBE_TOKENS = 32  # a tool-less request with an output cap up to this is a probe, a label or a title
LOOKED_AT = 600  # characters at both ends of a text in which marks are looked for

_TALK = r"(?:conversation|session|chat|dialogu?e|discussion|thread)"
_OURS = (
    rf"(?:(?:this|the|our)\s+(?:(?:whole|entire|full|above|previous|current)\s+)?{_TALK}(?:\s+history)?"
    rf"|(?:the|our|all)\s+work\s+(?:done\s+)?so\s+far)"
)
# "the conversation between A and B", "this conversation: …" and the like are documents that somebody wants read.
_NOT_A_DOCUMENT = r"(?!\s*(?:between|from|in\b|with|of|below|that\s+follows|transcript|\bfile|:|```|\"|<))"
_SUMMARISE = re.compile(
    rf"\b(?:summari[sz]e|condense|compact|recap)\s+{_OURS}{_NOT_A_DOCUMENT}"
    rf"|\b(?:write|create|provide|produce|give|generate|make|prepare)\b[^.!?\n]{{0,60}}\b(?:summary|recap|checkpoint|hand-?off)\s+"
    rf"(?:of|for|covering)\s+{_OURS}{_NOT_A_DOCUMENT}",
    re.IGNORECASE,
)
_TITLE = re.compile(
    rf"\btitle\s+generator\b"
    rf"|\b(?:make|write|generate|create|give|suggest|provide|produce|find)\b[^.!?\n]{{0,60}}\b(?:title|name)\b[^.!?\n]{{0,30}}\b(?:this|the|a)\s+(?:\w+\s+)?{_TALK}"
    rf"|\b(?:conversation|chat|session|task)\s+titles?\b",
    re.IGNORECASE,
)


class Marks(msgspec.Struct, frozen=True):
    """What a client writes into its side calls; the generic rules hold besides."""

    summarise_last: tuple[re.Pattern[str], ...] = ()  # in the last user text, tools or not
    summarise_system: tuple[re.Pattern[str], ...] = ()  # in the opening of the system text
    title: tuple[re.Pattern[str], ...] = ()
    other: tuple[re.Pattern[str], ...] = ()  # in the last user text of any other side call, tools or not
    flat: tuple[str, ...] = ()  # opening marks of a transcript written into one user text
    keeps_tail: bool = True  # the client goes on with the newest messages after its own compaction


def side_of(transcript: Transcript, marks: Marks) -> str:
    """Gives "title", "summary", "flat" or "other" for a side call, "" for a request of the conversation itself."""
    messages = transcript.messages
    if transcript.compacts:
        return "summary"
    if not messages or messages[-1].role in ("system", "developer"):
        return ""
    last = _last_text(messages[-1])
    system = transcript.system_text[: 2 * LOOKED_AT]
    if messages[-1].role == "user" and _summarises(transcript, last, system, marks):
        return "flat" if not transcript.tools and any(mark in last for mark in marks.flat) else "summary"
    if messages[-1].role == "user" and any(pattern.search(last) for pattern in marks.other):
        return "other"
    return "" if transcript.tools else _without_tools(transcript, last, system, marks)


def _without_tools(transcript: Transcript, last: str, system: str, marks: Marks) -> str:
    if _asks_title(transcript, last, system, marks):
        return "title"
    return "other" if 0 < transcript.max_output <= PROBE_TOKENS else ""


def _talk(transcript: Transcript) -> list[Message]:
    return [message for message in transcript.messages if message.role not in ("system", "developer")]


def _last_text(message: Message) -> str:
    return next((part.text for part in reversed(message.parts) if part.kind == "text"), "")


def _ends(text: str) -> str:
    return text if len(text) <= 2 * LOOKED_AT else f"{text[:LOOKED_AT]}\n{text[-LOOKED_AT:]}"


def _summarises(transcript: Transcript, last: str, system: str, marks: Marks) -> bool:
    if any(pattern.search(last) for pattern in marks.summarise_last):
        return True
    if any(pattern.search(system) for pattern in marks.summarise_system):
        return True
    if transcript.tools:
        return False
    if any(mark in last for mark in marks.flat) and len(_talk(transcript)) == 1:
        return _SUMMARISE.search(_ends(last) + system) is not None
    # Without an answer before it there is no conversation yet that could be meant.
    return _SUMMARISE.search(_ends(last)) is not None and any(m.role == "assistant" for m in transcript.messages)


def _asks_title(transcript: Transcript, last: str, system: str, marks: Marks) -> bool:
    if any(pattern.search(system) or pattern.search(last[:LOOKED_AT]) for pattern in marks.title):
        return True
    if _TITLE.search(system) or _is_title_schema(transcript.response_format):
        return True
    # Without a system text the order stands in the first words of the user text, and nobody has answered yet.
    talk = _talk(transcript)
    return all(message.role == "user" for message in talk) and any(
        _TITLE.search(_last_text(message)[:200]) is not None for message in (talk[0], talk[-1])
    )


def _is_title_schema(response_format: str) -> bool:
    if '"title"' not in response_format:
        return False
    try:
        found = _properties(json.loads(response_format))
    except ValueError:
        return False
    return "title" in found and len(found) <= 2


def _properties(value: object) -> set[str]:
    if not isinstance(value, dict):
        return set()
    properties = value.get("properties")
    if isinstance(properties, dict):
        return set(properties)
    return next((found for inner in value.values() if (found := _properties(inner))), set())
