"""Requests that need nothing, known at a glance.

A request goes on from one that needed nothing, by the same client in the same words, and brings only what model and
tools said: nothing of the user's can be missing from it. It is sent at once, and what it brings is written down while
the model works. Whatever isn't certain here is decided the long way.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from msgspec.structs import replace

from proxy.exchange import Call
from proxy.pipeline.case import Quiet
from proxy.pipeline.conversation import Conversations
from proxy.pipeline.passage import Passage
from proxy.settings import Settings
from proxy.transcript import Message, Transcript

_KEPT = 512
_NEW = 32  # messages that one request may bring
_NEW_BYTES = 64 << 10
_CHANGING = frozenset({"content-length"})  # headers that say nothing about who is asking
_SAID = frozenset({"text", "call", "result", "thinking"})  # an opaque part may change what the model still sees
_OF_ANSWERS = frozenset({"truncated_silently", "usage_outside"})  # flags that say nothing of the request
_SAME_PATH = ("new", "extends", "resend")


class Glance:
    """Remembers the newest quiet request of each conversation."""

    def __init__(self, settings: Settings, conversations: Conversations) -> None:
        self._conversations = conversations
        # What would change even such a request, or would want to look at it first.
        self._off = settings.mode == "observe" or settings.repair.orphan_tool_results != "off"
        self._quiet: OrderedDict[str, Quiet] = OrderedDict()  # by the digest of the last message

    def find(self, call: Call, transcript: Transcript, limit: float) -> Quiet | None:
        """Gives the quiet request that this one goes on from, None where the long way has to decide."""
        if self._off or transcript.continues or transcript.compacts:
            return None
        messages = transcript.messages
        for place in range(len(messages), max(0, len(messages) - _NEW), -1):
            known = self._quiet.get(messages[place - 1].digest)
            if known is not None and known.messages == messages[:place]:
                state = known.track.state
                fits = not limit or state.at_most(messages, state.counted) < limit
                quiet = fits and self._holds(known, call, transcript) and _brings_nothing(known, messages[place:])
                return known if quiet else None
        return None

    def _holds(self, known: Quiet, call: Call, transcript: Transcript) -> bool:
        return (
            _same_request(known.case.transcript, transcript)
            and known.headers == _telling(call.headers)
            and not known.track.state.memory.insertions
            and self._conversations.unmoved(known, again=known.messages == transcript.messages)
        )

    def forget(self) -> None:
        """Forgets all of them: by other rules or profiles what was quiet may not be."""
        self._quiet.clear()

    def learn(self, passage: Passage) -> None:
        """Remembers a request that was answered, if it needed nothing, in place of the one that it goes on from."""
        case, plan, before = passage.case, passage.plan, passage.quiet
        if self._off or case is None or case.track is None or plan is None or passage.rewritten or passage.held:
            return
        whole = len(plan.presence.verbatim) == plan.presence.active
        if (
            set(passage.flags) - _OF_ANSWERS
            or plan.insertions
            or plan.kind
            or not whole
            or case.link.relation not in _SAME_PATH
        ):
            return
        if before is not None:
            self._quiet.pop(before.messages[-1].digest, None)
        if case.transcript.messages:
            name = case.transcript.messages[-1].digest
            headers = before.headers if before is not None else _telling(case.call.headers)
            # Its messages are in memory with their branch: the body would hold all of them once more.
            bodiless = replace(case, call=replace(case.call, body=b""))
            self._quiet[name] = Quiet(bodiless, case.track, plan, headers)
            self._quiet.move_to_end(name)
        if len(self._quiet) > _KEPT:
            self._quiet.popitem(last=False)


def _telling(headers: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    return tuple([pair for pair in headers if pair[0].lower() not in _CHANGING])


def _same_request(known: Transcript, now: Transcript) -> bool:
    """Whether two bodies differ in their messages alone."""
    return (
        known.model == now.model
        and known.tools_raw == now.tools_raw
        and known.system == now.system
        and known.max_output == now.max_output
        and known.stream == now.stream
        and known.response_format == now.response_format
        and known.options == now.options
    )


def _brings_nothing(known: Quiet, new: tuple[Message, ...]) -> bool:
    """Whether nobody spoke."""
    if not new:
        return True
    if sum([len(message.raw) for message in new]) > _NEW_BYTES:
        return False
    calls = {
        part.call_id: part.name
        for message in (*known.messages[-_NEW:], *new)
        for part in message.parts
        if part.kind == "call"
    }
    return all(_unspoken(message) and not known.case.profile.peel(message, calls) for message in new)


def _unspoken(message: Message) -> bool:
    if any(part.kind not in _SAID for part in message.parts):
        return False
    if message.role in ("assistant", "tool", "function"):
        return True
    return message.role == "user" and bool(message.parts) and all(part.kind == "result" for part in message.parts)
