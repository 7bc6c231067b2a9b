"""Option `usage: client`: answers tell the size of the client's own body, so that an agent still compacts by itself."""

from __future__ import annotations

from proxy.dialects.usage import raised, raised_events, whole_events
from proxy.exchange import Sink
from proxy.pipeline.passage import Passage
from proxy.upstream import Headers

FLAG = "usage_raised"


def told(passage: Passage, sink: Sink) -> Sink:
    """Gives where the answer to this request goes: the client's own sink when nothing was left out."""
    more = _left_out(passage)
    if not more:
        return sink
    passage.flagged(FLAG, f"told {more} tokens more than the upstream")
    return RaisedUsage(sink, more)


def _left_out(passage: Passage) -> int:
    """Gives the tokens (the upstream's) that the client's own body would have cost beyond the forwarded one."""
    plan, policy = passage.plan, passage.policy
    if plan is None or policy is None or not passage.effective:
        return 0
    return max(round((plan.estimate_in - plan.estimate_out) * policy.ratio), 0)


class RaisedUsage:
    """A sink that tells the client a larger prompt; an answer that is no stream leaves when it is whole."""

    def __init__(self, sink: Sink, by: int) -> None:
        self._sink = sink
        self._by = by
        self._head: tuple[int, Headers] | None = None  # of an answer that is held until it is whole
        self._sse = self.opened = sink.opened  # what was opened already is a stream
        self._held = b""

    async def open(self, status: int, headers: Headers) -> None:
        """Sends status and headers of a stream; holds those of an answer whose length may change."""
        self.opened = True
        known = {name.lower(): value.lower() for name, value in headers}
        plain = known.get("content-encoding", "identity") in ("", "identity")
        kind = known.get("content-type", "")
        self._sse = plain and kind.startswith("text/event-stream")
        if plain and not self._sse and "json" in kind:
            self._head = (status, headers)
        else:
            await self._sink.open(status, headers)

    async def write(self, data: bytes) -> None:
        """Sends whole events at once, and keeps the beginning of one that isn't whole yet."""
        if self._head is not None:
            self._held += data
        elif self._sse:
            held = self._held + data
            ready = whole_events(held)
            self._held = held[ready:]
            if ready:
                await self._sink.write(raised_events(held[:ready], self._by))
        else:
            await self._sink.write(data)

    async def close(self) -> None:
        """Sends what was held, and ends the answer."""
        if self._head is not None:
            status, headers = self._head
            body = raised(self._held, self._by)
            sized = [(name, str(len(body)) if name.lower() == "content-length" else value) for name, value in headers]
            await self._sink.open(status, tuple(sized))
            await self._sink.write(body)
        elif self._held:
            await self._sink.write(raised_events(self._held, self._by))
        await self._sink.close()

    def abort(self) -> None:
        """Breaks the connection; of an answer that was held, nothing was sent."""
        self._sink.abort()
