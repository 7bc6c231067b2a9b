"""Body and headers as they leave: what a plan decided, in the form that its dialect needs."""

from __future__ import annotations

from collections.abc import Sequence

from proxy.compaction.cachemarks import marked
from proxy.compaction.plan import Plan
from proxy.compaction.thinking import CONDENSING, asking_to_drop, carries_block, drops, with_beta
from proxy.dialects.base import Dialect
from proxy.pipeline.passage import Passage
from proxy.transcript import Transcript
from proxy.upstream import Headers


def body_of(dialect: Dialect, transcript: Transcript, plan: Plan, messages: Sequence[bytes]) -> bytes:
    """Gives the body with these messages; in Messages with a cache mark, and what signed reasoning asks for."""
    if transcript.dialect == "messages" and plan.pieces:
        messages = marked(messages, plan.pieces, plan.insertions, transcript)
    body = dialect.render(transcript, messages)
    return asking_to_drop(body) if drops(plan.insertions) else body


def headers_of(passage: Passage) -> Headers:
    """Gives the request headers: the client's own, and the betas that our body needs."""
    headers = passage.call.headers
    if not passage.rewritten or passage.plan is None:
        return headers
    if drops(passage.plan.insertions):
        headers = with_beta(headers)
    return with_beta(headers, CONDENSING) if carries_block(passage.plan.insertions) else headers
