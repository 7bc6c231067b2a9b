"""Body and headers as they leave."""

from __future__ import annotations

from proxy.compaction.outgoing import body_of
from proxy.compaction.thinking import CONDENSING, carries_block, drops, with_beta
from proxy.pipeline.passage import Passage
from proxy.upstream import Headers

__all__ = ["body_of", "headers_of"]


def headers_of(passage: Passage) -> Headers:
    """Gives the request headers: the client's own, and the betas that our body needs."""
    headers = passage.call.headers
    if not passage.rewritten or passage.plan is None:
        return headers
    if drops(passage.plan.insertions):
        headers = with_beta(headers)
    return with_beta(headers, CONDENSING) if carries_block(passage.plan.insertions) else headers
