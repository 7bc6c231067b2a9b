"""What one answer teaches: how the upstream counts, and which insertions it took."""

from __future__ import annotations

from msgspec.structs import replace

from proxy.compaction.rewrite import size
from proxy.pipeline.calibration import Calibrations
from proxy.pipeline.case import Case, Told, Track
from proxy.pipeline.journal import Journal
from proxy.pipeline.passage import Passage
from proxy.pipeline.weighing import warning, weighed
from proxy.transcript import Answer


def learn(passage: Passage, answer: Answer, calibrations: Calibrations, journal: Journal) -> None:
    """Takes what a finished answer says about the body that it answers into its branch and the calibrations."""
    case, plan, prompt_tokens = passage.case, passage.plan, answer.prompt_tokens
    if case is None or case.track is None:
        return
    state = case.track.state
    if plan is not None and passage.effective:
        state.good = tuple(one.id for one in plan.insertions)
    if plan is None or not prompt_tokens:
        return
    before, state.weight = state.weight, weighed(state.weight, passage, answer)
    if state.weight.truncated:
        note = warning(state.weight, case.transcript.model)
        passage.flagged("truncated_silently", note)
        if not before.truncated:
            journal.truncated(passage, note)
    guessed = not case.exact and not passage.held
    state.told = Told(case.transcript.messages, passage.standing, prompt_tokens) if guessed else None
    if not case.exact:
        return
    estimate = passage.estimate
    known = calibrations.reported(case.transcript.model, estimate, prompt_tokens)
    told = (estimate, prompt_tokens) if known else (0, 0)
    state.memory = replace(state.memory, estimate=told[0], reported=told[1])
    if not known and not state.weight.truncated:
        passage.flagged("usage_outside", f"reported {prompt_tokens} tokens for an estimate of {estimate}")


def catch_up(case: Case, track: Track, calibrations: Calibrations) -> None:
    """Learns from what the upstream told of a body that was only guessed, now that its tokens are counted."""
    state, told, view = track.state, track.state.told, track.view
    if told is None or not case.exact:
        return
    state.told = None
    known = len(told.messages)
    stood = [one for one in state.memory.insertions if one.id in told.standing]
    if view.messages[:known] == told.messages and len(stood) == len(told.standing):
        estimate = size(stood, view) - sum(view.tokens[known:])
        if calibrations.reported(case.transcript.model, estimate, told.tokens):
            state.memory = replace(state.memory, estimate=estimate, reported=told.tokens)
