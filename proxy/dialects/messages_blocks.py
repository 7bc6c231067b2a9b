"""Content blocks of Messages: what each kind means to the core."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from proxy.transcript import Part, digest_of

_CALL = "tool_use"  # tool_use, server_tool_use, mcp_tool_use
_RESULT = "tool_result"  # tool_result, mcp_tool_result, web_search_tool_result, …


def is_result(block: object) -> bool:
    """Whether a block answers a call."""
    return isinstance(block, dict) and str(block.get("type", "")).endswith(_RESULT)


def parts_of(content: object, role: str) -> tuple[Part, ...]:
    """Gives the parts of a message's content.

    The texts of an assistant are one part, and the first one: an answer may come back in other blocks than it was sent.
    """
    if isinstance(content, str):
        return (Part("text", content),) if content else ()
    if not isinstance(content, list):
        return ()
    parts = [part for block in content for part in _parts(block)]
    if role != "assistant":
        return tuple(parts)
    text = "".join(part.text for part in parts if part.kind == "text")
    others = [part for part in parts if part.kind != "text"]
    if len(content) == 1 and others and others[0].name == "compaction":
        others = [replace(others[0], text=text_of(content[0].get("content")))]
    return (Part("text", text), *others) if text else tuple(others)


def text_of(content: object) -> str:
    """The text of a value: a string, or its text blocks joined with line feeds."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = (block.get("text") for block in content if isinstance(block, dict) and block.get("type") == "text")
    return "\n".join(text for text in texts if isinstance(text, str))


def _parts(block: object) -> Iterator[Part]:
    if not isinstance(block, dict):
        yield Part("opaque", size=len(str(block)))
        return
    kind = str(block.get("type", ""))
    if kind == "text":
        yield Part("text", _string(block.get("text")))
    elif kind.endswith(_CALL):
        arguments = msgspec.json.encode(block.get("input", {})).decode()
        yield Part("call", arguments, _string(block.get("name")), _string(block.get("id")))
    elif kind.endswith(_RESULT):
        yield from _result(block)
    elif kind == "image":
        yield Part("image", size=_data_size(block))
    elif kind == "thinking":
        yield _thinking(_string(block.get("thinking")), _string(block.get("signature")))
    elif kind == "redacted_thinking":
        yield _thinking("", _string(block.get("data")))
    else:
        yield _opaque(kind, block)


def _thinking(text: str, seal: str) -> Part:
    """Reasoning; where its text isn't shown, it stands encrypted in what seals it."""
    return Part("thinking", text, size=0 if text else len(seal), signed=_seal(seal))


def _opaque(kind: str, block: dict[str, Any]) -> Part:
    size = len(msgspec.json.encode(block))
    sealed = block.get("signature") or block.get("encrypted_content") or block.get("content")
    if kind != "compaction" or not sealed:  # a compaction without content is one that failed
        return Part("opaque", size=size)
    return Part("opaque", name="compaction", size=size, signed=_seal(sealed))


def _result(block: dict[str, Any]) -> Iterator[Part]:
    """A result and, as parts of their own, the pictures and files in it."""
    content = block.get("content")
    inner = content if isinstance(content, list) else [content] if isinstance(content, dict) else []
    files = [item for item in inner if isinstance(item, dict) and item.get("type") in ("image", "document")]
    texts = [_plain(item) for item in inner if item not in files]
    text = content if isinstance(content, str) else "\n".join(texts)
    yield Part("result", text, call_id=_string(block.get("tool_use_id")))
    for item in files:
        yield from _parts(item)


def _plain(item: object) -> str:
    if isinstance(item, dict) and item.get("type") == "text":
        return _string(item.get("text"))
    return msgspec.json.encode(item).decode()


def _data_size(block: dict[str, Any]) -> int:
    source = block.get("source")
    found = source.get("data") or source.get("url") if isinstance(source, dict) else None
    return len(_string(found))


def _seal(value: object) -> str:
    if not value:
        return ""
    return digest_of(value.encode(errors="surrogatepass") if isinstance(value, str) else msgspec.json.encode(value))


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""
