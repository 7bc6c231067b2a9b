"""Reads stored messages: what dialect one was sent in shows in its form."""

from __future__ import annotations

import msgspec

from proxy.dialects.chat import Chat
from proxy.dialects.messages import Messages
from proxy.dialects.responses import Responses
from proxy.transcript import Message

_chat, _messages, _responses = Chat(), Messages(), Responses()
_CHAT_BLOCKS = {"text", "image_url", "input_audio", "file", "refusal"}
_ITEM_BLOCKS = ("input_text", "output_text", "input_image", "input_file")


def read_stored(raw: bytes) -> Message:
    """Gives a message as its own dialect reads it. Raises UnreadableBody."""
    item = msgspec.json.decode(raw)
    if not isinstance(item, dict) or item.get("role") in ("tool", "function") or "tool_calls" in item:
        return _chat.message(raw)
    if isinstance(item.get("type"), str):
        return _responses.message(raw)
    content = item.get("content")
    kinds = {block.get("type") for block in content if isinstance(block, dict)} if isinstance(content, list) else set()
    if not kinds.isdisjoint(_ITEM_BLOCKS):
        return _responses.message(raw)
    return (_chat if kinds <= _CHAT_BLOCKS else _messages).message(raw)
