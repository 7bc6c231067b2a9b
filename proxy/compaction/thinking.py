"""Signed reasoning in the Messages dialect: what may be changed before it, and what happens to it when we compact.

Newer models bind the signature of a reasoning block to everything before it: system text, tools, earlier messages, and
other reasoning blocks. So in a body with such blocks (or with the provider's own compaction block) nothing is inserted
in front of them: what has to be put back goes into the newest user message. A cut of our own does change what stands in
front of the turns that it keeps. The upstream is then asked to drop what no longer matches ("drop"); an upstream that
refuses this gets the kept turns without their reasoning ("strip"), which is only possible where the user has the word.

Or the provider itself condenses the oldest turns ("compaction on demand"): its signed block may stand in their place,
and what follows it directly stays valid (`condensed.py`).

Built from Anthropic's documentation (its pages on preserved thinking, and on compaction on demand, in the background,
with recent turns kept), and tried against a stand-in that checks signatures; never on the live service.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from proxy.compaction.insertion import Insertion, Placement, Reasoning
from proxy.compaction.view import View
from proxy.transcript import Message

BETA = "thinking-binding-controls-2026-08-01"
CONDENSING = "compact-2026-09-04"
LEFT_OUT = "(reasoning left out)"  # stands where a message was nothing but reasoning: an empty one is refused
_KINDS = ("thinking", "redacted_thinking")
_REFUSED = re.compile(
    rb"signature.{0,40}thinking|thinking.{0,80}signature|block_binding|thinking-binding|prefix_mismatch|anthropic-beta",
    re.IGNORECASE | re.DOTALL,
)
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_blocks = msgspec.json.Decoder(list[msgspec.Raw])


class Condensed(msgspec.Struct, frozen=True):
    """The provider's own block for the turns up to key `end`, and what it cost."""

    raw: str  # the whole message, as it was returned
    text: str  # the summary in it
    end: int  # first key that stays
    anchor: str  # hex of chain[end - 1]
    within: tuple[str, ...]  # ids of our insertions that it stands for
    model: str = ""
    tokens: int = 0


def seals(messages: Sequence[Message]) -> tuple[str, ...]:
    """Gives the ids of all signatures on reasoning in these messages."""
    return tuple(
        part.signed for message in messages for part in message.parts if part.signed and part.kind == "thinking"
    )


def binds(messages: Sequence[Message]) -> bool:
    """Whether a signature in these messages binds what stands before it."""
    return any(part.signed for message in messages for part in message.parts)


def hidden(messages: Sequence[Message]) -> int:
    """Gives how many messages at the head the model doesn't read: those before the newest compaction block."""
    for index in range(len(messages) - 1, 0, -1):
        for part in messages[index].parts:  # no generator: this looks at every message of every request
            if part.signed and part.name == "compaction":
                return index
    return 0


def unread_head(view: View) -> int:
    """Gives how many messages at the head the model doesn't read; only Messages has blocks that hide them."""
    return hidden(view.messages) if view.transcript.dialect == "messages" else 0


def visible(view: View) -> View:
    """Gives the view with no tokens for what the model doesn't read."""
    unread = unread_head(view)
    return replace(view, tokens=(0,) * unread + view.tokens[unread:]) if unread else view


def newest_place(view: View) -> tuple[int, Placement] | None:
    """Gives the only place for text in a body with signatures: the newest message, when that is the user's."""
    ours = bool(view.messages) and view.messages[-1].role == "user"
    return (len(view.keys), "into_previous") if ours else None


def waits(view: View, insertions: Sequence[Insertion], refused: Collection[str]) -> bool:
    """Whether a cut has to wait for the user's next turn: in a run of calls the model needs its reasoning back."""
    if not drop_refused(insertions, refused) or _switched_off(view) or not seals(view.messages):
        return False
    last = view.messages[-1]
    spoken = bool(view.keys) and view.keys[-1].kind == "u" and view.keys[-1].message == len(view.messages) - 1
    return not spoken or any(part.kind == "result" for part in last.parts)


def treatment(
    view: View, end: int, insertions: Sequence[Insertion], refused: Collection[str]
) -> tuple[Reasoning, tuple[str, ...]]:
    """Gives what becomes of the reasoning behind a cut at key `end`, and the signatures that leave the body."""
    kept = seals(view.messages[view.place(end) :])
    if not kept:
        return "", ()
    if _switched_off(view) or drop_refused(insertions, refused):
        return "strip", kept
    return "drop", ()


def drop_refused(insertions: Sequence[Insertion], refused: Collection[str]) -> bool:
    """Whether the branch's upstream has shown that it doesn't drop blocks; remembered by what was inserted since."""
    return any(one.reasoning == "strip" or (one.reasoning == "drop" and one.id in refused) for one in insertions)


def drops(insertions: Sequence[Insertion]) -> frozenset[str]:
    """Gives the ids of the insertions for which the upstream has to drop blocks."""
    return frozenset(one.id for one in insertions if one.reasoning == "drop")


def is_refusal(status: int, body: bytes) -> bool:
    """Whether an upstream refused a body for its signatures, or for being asked to drop blocks."""
    return status == 400 and _REFUSED.search(body) is not None


def asking_to_drop(body: bytes) -> bytes:
    """Gives a body that asks the upstream to drop reasoning whose signature no longer matches; the rest as it was."""
    fields = _fields.decode(body)
    asked = msgspec.json.decode(fields["thinking"]) if "thinking" in fields else {"type": "adaptive"}
    binding = asked.get("block_binding")
    known: dict[str, Any] = binding if isinstance(binding, dict) else {}
    asked["block_binding"] = {**known, "prefix_mismatch_behavior": "drop_block"}
    fields["thinking"] = msgspec.Raw(msgspec.json.encode(asked))
    return msgspec.json.encode(fields)


def may_condense(
    view: View, insertions: Sequence[Insertion], known: Sequence[Insertion], refused: Collection[str]
) -> bool:
    """Whether the provider may be asked for a block: there is reasoning to keep, and no other way was taken before."""
    other = any(one.reason == "compaction" and not one.raw for one in insertions)
    failed = any(one.raw and one.id in refused for one in known)
    fields = view.transcript.options
    edits = fields.get("context_management", b"")
    budget = fields.get("output_config", b"")
    return (
        view.transcript.dialect == "messages"
        and bool(seals(view.messages))
        and not (other or failed or _switched_off(view) or any(_compacted(one) for one in view.messages))
        and b'"compact_' not in edits  # the provider's own threshold can't run beside a block
        and b'"remaining"' not in budget  # nor can a task's budget be told beside one
    )


def _compacted(message: Message) -> bool:
    return any(part.name == "compaction" for part in message.parts)


def asking_to_condense(body: bytes, max_tokens: int) -> bytes:
    """Gives a body that asks for a block, without what the API refuses beside that; system and tools as they were."""
    fields = _fields.decode(body)
    for name in ("stream", "stop_sequences", "context_management"):
        fields.pop(name, None)
    choice = msgspec.json.decode(fields.get("tool_choice", b"null"))
    if isinstance(choice, dict) and choice.get("type") in ("any", "tool"):
        del fields["tool_choice"]
    output = msgspec.json.decode(fields.get("output_config", b"null"))
    if isinstance(output, dict) and output.pop("format", None) is not None:
        fields["output_config"] = msgspec.Raw(msgspec.json.encode(output))
    asked = msgspec.json.decode(fields.get("thinking", b"null"))
    thought = asked.get("budget_tokens") if isinstance(asked, dict) else 0
    room = max_tokens + (thought if isinstance(thought, int) else 0)
    fields["max_tokens"] = msgspec.Raw(str(room).encode())
    fields["compaction"] = msgspec.Raw(b'{"type":"summarize"}')
    return msgspec.json.encode(fields)


def block_in(answer: bytes) -> tuple[str, str, int]:
    """Gives the message with the block of an answer, as it came, the summary in it, and its price in tokens.

    Without a block all are empty: then no summary came about.
    """
    fields = _fields.decode(answer)
    content = fields.get("content", msgspec.Raw(b"[]"))
    blocks = msgspec.json.decode(content)
    whole = isinstance(blocks, list) and len(blocks) == 1 and isinstance(blocks[0], dict)
    if msgspec.json.decode(fields.get("stop_reason", b"null")) != "compaction" or not whole:
        return "", "", 0
    text = blocks[0].get("content")
    if blocks[0].get("type") != "compaction" or not isinstance(text, str) or not blocks[0].get("signature"):
        return "", "", 0
    usage = msgspec.json.decode(fields.get("usage", b"{}"))
    rounds = usage.get("iterations") if isinstance(usage, dict) else None
    paid = [one for one in rounds if isinstance(one, dict)] if isinstance(rounds, list) else []
    tokens = sum(int(one.get(name) or 0) for one in paid for name in ("input_tokens", "output_tokens"))
    return '{"role":"assistant","content":' + bytes(content).decode() + "}", text, tokens


def carries_block(insertions: Sequence[Insertion]) -> bool:
    """Whether a block of the provider's own stands in the body."""
    return any(one.raw for one in insertions)


def with_beta(headers: Sequence[tuple[str, str]], beta: str = BETA) -> tuple[tuple[str, str], ...]:
    """Gives the headers with the beta that `asking_to_drop` (or, by its name, another thing) needs."""
    named = [value for name, value in headers if name.lower() == "anthropic-beta"]
    betas = [beta.strip() for value in named for beta in value.split(",") if beta.strip()]
    others = [(name, value) for name, value in headers if name.lower() != "anthropic-beta"]
    return (*others, ("anthropic-beta", ",".join(dict.fromkeys((*betas, beta)))))


def stripped(raw: bytes) -> bytes:
    """Gives a message without its reasoning, all other blocks byte for byte."""
    fields = _fields.decode(raw)
    blocks = [block for block in _blocks.decode(fields["content"]) if not _is_reasoning(block)]
    if not blocks:
        blocks = [msgspec.Raw(msgspec.json.encode({"type": "text", "text": LEFT_OUT}))]
    fields["content"] = msgspec.Raw(msgspec.json.encode(blocks))
    return msgspec.json.encode(fields)


def _is_reasoning(block: msgspec.Raw) -> bool:
    value = msgspec.json.decode(block)
    return isinstance(value, dict) and value.get("type") in _KINDS


def _switched_off(view: View) -> bool:
    """Whether the request switches reasoning off: then blocks can't be dropped for us, and aren't needed either."""
    asked = view.transcript.options.get("thinking")
    value = msgspec.json.decode(asked) if asked else None
    return isinstance(value, dict) and value.get("type") == "disabled"
