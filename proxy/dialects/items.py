"""The items of the Responses API, read as messages.

Facts about the wire: the item kinds of OpenAI's SDK. Calls end in `_call`, their outputs in `_output`, both carry a
`call_id`; calls that the server runs itself carry their output with them. What isn't known is opaque.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from proxy.errors import UnreadableBody
from proxy.transcript import Message, Part, digest_of

TRIGGER = "compaction_trigger"
REFERENCE = "item_reference"
_COMPACTIONS = ("compaction", "compaction_summary")
_TEXTS = ("input_text", "output_text", "text", "summary_text", "reasoning_text")
_ARGUMENTS = ("arguments", "input", "action", "operation", "code", "queries")
_OWN_OUTPUTS = ("output", "outputs", "results", "error")  # of calls that the server runs itself
_ASKED, _ALLOWED = "mcp_approval_request", "mcp_approval_response"


def read_item(raw: bytes) -> Message:
    """Reads one item. Raises UnreadableBody when it isn't a JSON object."""
    try:
        item = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnreadableBody(f"an item can't be read: {error}") from error
    if not isinstance(item, dict):
        raise UnreadableBody("an item is not an object")
    role, parts = _read(item, len(raw))
    return Message(raw=raw, digest=digest_of(raw), role=role, parts=tuple(parts))


def refusals(raw: bytes) -> str:
    """Gives the words with which an output item refuses, "" when it doesn't."""
    if b'"refusal"' not in raw:
        return ""
    content = msgspec.json.decode(raw).get("content")
    parts = content if isinstance(content, list) else ()
    return "\n".join(_word(part, "refusal") for part in parts if isinstance(part, dict) and "refusal" in part)


def _read(item: dict[str, Any], size: int) -> tuple[str, Iterable[Part]]:
    kind = _word(item, "type") or ("message" if "role" in item else "")
    if kind == "message":
        return _word(item, "role"), _content(item.get("content"))
    if kind == "reasoning":
        return "assistant", [_thinking(item)]
    if kind.endswith("_output") or kind == _ALLOWED:
        return "tool", _result(item)
    if kind.endswith("_call") or kind == _ASKED:
        return "assistant", _call(item, kind)
    return _word(item, "role") or "assistant", [_opaque(item, kind, size)]


def _opaque(item: dict[str, Any], kind: str, size: int) -> Part:
    if kind in _COMPACTIONS:
        return Part("opaque", _word(item, "encrypted_content"), name="compaction", size=size)
    if kind in ("", REFERENCE):  # a reference may leave out what it is
        return Part("opaque", name=REFERENCE, call_id=_word(item, "id"), size=size)
    return Part("opaque", name=kind, size=size)


def _content(content: Any) -> list[Part]:  # noqa: ANN401  whatever the client sent
    if isinstance(content, str):
        return [Part("text", content)] if content else []
    return [_part(part) for part in content] if isinstance(content, list) else []


def _part(part: Any) -> Part:  # noqa: ANN401
    if not isinstance(part, dict):
        return Part("opaque", size=len(str(part)))
    kind = part.get("type")
    if kind in _TEXTS and isinstance(part.get("text"), str):
        return Part("text", part["text"])
    if kind == "refusal" and isinstance(part.get("refusal"), str):
        return Part("text", part["refusal"])
    if kind in ("input_image", "computer_screenshot"):
        return Part("image", size=len(_word(part, "image_url")))
    return Part("opaque", size=len(str(part)))


def _thinking(item: dict[str, Any]) -> Part:
    told = [*_listed(item.get("summary")), *_listed(item.get("content"))]
    text = "\n".join(_word(part, "text") for part in told if isinstance(part, dict))
    return Part("thinking", text, size=len(_word(item, "encrypted_content")))


def _call(item: dict[str, Any], kind: str) -> list[Part]:
    given = next((item[name] for name in _ARGUMENTS if item.get(name) is not None), "")
    name = _word(item, "name") or kind.removesuffix("_call")
    identity = _word(item, "id") if kind == _ASKED else _word(item, "call_id")
    parts = [Part("call", _json(given), name=name, call_id=identity)]
    if isinstance(picture := item.get("result"), str):
        parts.append(Part("image", size=len(picture)))
    own = next((item[name] for name in _OWN_OUTPUTS if item.get(name)), None)
    if own is not None and not identity:
        parts.append(Part("result", _json(own), name=name))
    return parts


def _result(item: dict[str, Any]) -> list[Part]:
    identity = _word(item, "call_id") or _word(item, "approval_request_id") or _word(item, "id")
    output = item.get("output", item.get("reason", item.get("tools")))
    parts = _content([output] if isinstance(output, dict) else output)
    pictures = [part for part in parts if part.kind == "image"]
    if isinstance(output, list | dict) and all(part.kind == "opaque" for part in parts):
        text = _json(output) if output else ""
    else:
        text = "\n".join(part.text for part in parts if part.kind == "text")
    return [Part("result", text, name=_word(item, "name"), call_id=identity), *pictures]


def _json(value: Any) -> str:  # noqa: ANN401
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _listed(value: Any) -> list[Any]:  # noqa: ANN401
    return value if isinstance(value, list) else []


def _word(item: dict[str, Any], name: str) -> str:
    value = item.get(name)
    return value if isinstance(value, str) else ""
