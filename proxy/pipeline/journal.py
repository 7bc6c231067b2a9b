"""What is written down about each request: receipt, response headers, one log line, counters."""

from __future__ import annotations

import traceback
from collections.abc import Iterable
from hashlib import blake2b

from proxy.compaction.digest import outcome as outcome_of
from proxy.compaction.receipt import Receipt, ToolCall, body_digest
from proxy.lineage.keys import canonical
from proxy.pipeline.case import Case
from proxy.pipeline.passage import Outcome, Passage
from proxy.redaction import Sealer
from proxy.store.rows import Batch, now
from proxy.store.sqlite import Store
from proxy.telemetry import Counters, Log
from proxy.transcript import Answer

_MODELS = 256  # model names whose masked form is remembered
_TRACE_LINES = 12
_GAVE_WAY = ("pins_over_budget", "pin_excerpted", "pin_left_out")


class Journal:
    """Writes receipts and log lines, off the hot path."""

    def __init__(self, store: Store, log: Log, counters: Counters, seal: Sealer, *, tool_output: bool = True) -> None:
        self._store = store
        self._log = log
        self._counters = counters
        self._seal = seal
        self._tool_output = tool_output
        self._models: dict[str, str] = {}

    def headers(self, passage: Passage) -> tuple[tuple[str, str], ...]:
        """Gives our response headers."""
        found = [("x-goalkeeper-receipt", passage.receipt)]
        quiet, case, plan = passage.quiet, passage.case, passage.plan
        if quiet is not None and case is None:  # not yet written down: what held before holds now
            case, plan = quiet.case, quiet.plan
        if case is not None and case.link.session:
            found.append(("x-goalkeeper-session", case.link.session))
        if plan is not None:
            found.append(("x-goalkeeper-pins", f"{len(plan.presence.verbatim)}/{plan.presence.active}"))
        found.append(("x-goalkeeper-compaction", _kind(passage) or "none"))
        if case is not None and case.track is not None and case.track.state.weight.truncated:
            found.append(("x-goalkeeper-warning", "truncated_silently"))  # the answer before this one was made so
        return tuple(found)

    def failed(self, receipt: str, error: BaseException) -> None:
        """Logs an error that was caught in the one place that fails open."""
        trace = "".join(traceback.format_exception(error)[-_TRACE_LINES:])
        self._log.info(
            "failed", receipt=receipt, error=self._masked(f"{type(error).__name__}: {error}"), trace=self._masked(trace)
        )

    def truncated(self, passage: Passage, note: str) -> None:
        """Logs that the upstream has begun to drop what it is sent."""
        session = passage.case.link.session if passage.case else ""
        self._log.error("truncated_silently", receipt=passage.receipt, session=session, note=note)

    def receipt(self, passage: Passage, outcome: Outcome, answer: Answer) -> Receipt:
        """Makes the receipt, writes one log line and counts."""
        receipt = self._receipt(passage, outcome, answer)
        if passage.case is None:
            self._store.submit(Batch(request=receipt.id, receipt=receipt))
        self._count(receipt)
        self._log.info(
            "request",
            receipt=receipt.id,
            session=receipt.session,
            relation=receipt.relation,
            status=receipt.status,
            tokens_in=receipt.tokens_in,
            tokens_out=receipt.tokens_out,
            pins=f"{receipt.pins_present}/{receipt.pins_active}",
            compaction=receipt.compaction,
            flags=receipt.flags,
        )
        return receipt

    def _count(self, receipt: Receipt) -> None:
        counters = self._counters
        counters.add("requests_total", receipt.relation or "unread")
        if receipt.compaction in ("compaction", "retry"):
            counters.add("compactions_total")
        if receipt.compaction == "restore":
            counters.add("restores_total")
        if any(flag in _GAVE_WAY for flag in receipt.flags):
            counters.add("pins_given_way_total")
        if "truncated_silently" in receipt.flags:
            counters.add("truncated_silently_total")
        if receipt.changed and receipt.tokens_in > receipt.tokens_out:
            counters.add("tokens_saved_total", by=receipt.tokens_in - receipt.tokens_out)

    def _receipt(self, passage: Passage, outcome: Outcome, answer: Answer) -> Receipt:
        case, plan, policy = passage.case, passage.plan, passage.policy
        link = case.link if case else None
        presence = plan.presence if plan else None
        return Receipt(
            id=passage.receipt,
            at=now(),
            session=link.session if link else "",
            branch=link.line if link else "",
            epoch=link.epoch if link else 0,
            track=(link.branch or "") if link else "",
            client=case.profile.name if case else "",
            model=self._masked_model(case.transcript.model) if case else "",
            dialect=case.transcript.dialect if case else "",
            path=passage.call.path.partition("?")[0],
            relation=link.relation if link else "",
            session_match=link.match if link else "",
            match_detail=link.detail if link else "",
            candidates=link.candidates if link else (),
            mode=policy.mode if policy else "",
            flags=passage.flags,
            notes=passage.notes,  # sealed with the record, masked in a log line
            messages=len(case.transcript.messages) if case else 0,
            insertions=passage.planned if passage.effective else (),
            compaction=_kind(passage),
            pins_present=len(presence.verbatim) if presence else 0,
            pins_active=presence.active if presence else 0,
            pins=presence.verbatim if presence else (),
            tokens_in=plan.tokens_in if plan else 0,
            tokens_out=plan.tokens_out if plan else 0,
            budget=policy.budget.size if policy else 0,
            prompt_tokens=answer.prompt_tokens,
            cached_tokens=answer.cached_tokens,
            completion_tokens=answer.completion_tokens,
            status=outcome.status,
            attempts=2 if passage.retried else 1,
            changed=passage.rewritten,
            forwarded=_forwarded(passage),
            summarizer_model=passage.summary.model if passage.summary else "",
            summarizer_tokens=passage.summary.tokens if passage.summary else 0,
            partial=outcome.partial,
        )

    def calls(self, case: Case, answer: Answer) -> Iterable[ToolCall]:
        """Gives the calls whose results came with this request, and those that the answer made; for any thread."""
        messages = case.transcript.messages
        if case.track is not None and case.new_from < len(messages):
            asked = {
                part.call_id: part
                for message in messages[max(case.new_from - 64, 0) :]
                for part in message.parts
                if part.kind == "call"
            }
            for message in messages[case.new_from :]:
                for part in message.parts:
                    if part.kind == "result":
                        call = asked.get(part.call_id)
                        name, arguments = (call.name, call.text) if call else (part.name, "")
                        told = self._masked(outcome_of(part.text)) if self._tool_output else ""
                        yield ToolCall(part.call_id, name, _digest(arguments), told)
        for made in answer.calls:
            yield ToolCall(made.id, made.name, _digest(made.arguments), origin="answer")

    def _masked(self, text: str) -> str:
        return self._seal.mask(text)

    def _masked_model(self, name: str) -> str:
        if name not in self._models:
            if len(self._models) >= _MODELS:
                self._models.clear()
            self._models[name] = self._masked(name)
        return self._models[name]


def _kind(passage: Passage) -> str:
    if passage.plan is None or "observe" in passage.flags:
        return ""
    return "retry" if "overflow_retry" in passage.flags else passage.plan.kind


def _digest(arguments: str) -> str:
    return blake2b(canonical(arguments).encode(errors="surrogatepass"), digest_size=8).hexdigest() if arguments else ""


def _forwarded(passage: Passage) -> str:
    """A digest over the digests of the forwarded messages, which can be made again from the store."""
    case, plan = passage.case, passage.plan
    if case is None or case.track is None:
        return ""
    if plan and plan.pieces and passage.effective:
        return body_digest(piece.digest for piece in plan.pieces)
    return body_digest(case.link.path.digests if case.link.path else (m.digest for m in case.transcript.messages))
