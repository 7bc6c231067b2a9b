"""Whether an upstream read all that it was sent: some servers drop the oldest without a word, and only usage tells.

Nothing is learnt from it: a server that doesn't count what it has cached reports as little, and a window taken from
that would cut the session down to nothing. So it is told, with the size that is known to fit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from proxy.transcript import Answer

if TYPE_CHECKING:  # a passage carries a case, whose branch carries a weight
    from proxy.pipeline.passage import Passage

_LEAST = 1_024  # tokens of a body that somebody would truncate
_LEAST_READ = 256  # tokens that a truncated body still has: there is no smaller window
_KEPT = 0.45  # of what was read before: a server that shifts its window drops half of it
_GROWN = 200  # tokens by which a body has grown for sure


class Weight(msgspec.Struct, frozen=True):
    """What a body of a branch weighed by our count, and what the upstream says to have read of it."""

    estimate: int = 0
    counted: bool = False  # the estimate is no guess
    reported: int = 0
    standing: tuple[str, ...] = ()  # ids of the insertions in it
    peak: int = 0  # most tokens that the upstream read in this branch
    truncated: bool = False


def read_tokens(answer: Answer) -> int:
    """Gives what the upstream read; some count the cached part apart."""
    apart = answer.cached_tokens if answer.cached_tokens > answer.prompt_tokens else 0
    return answer.prompt_tokens + apart


def doubtful(estimate: int, reported: int) -> bool:
    """Whether so little was read that the estimate has to be a count before anything is said."""
    return estimate >= _LEAST and 0 < 2 * reported < estimate


def weighed(before: Weight, passage: Passage, answer: Answer) -> Weight:
    """Judges a body by the one before it: far less was read than sent, or no more although it had grown."""
    case, estimate, reported = passage.case, passage.estimate, read_tokens(answer)
    # Once it was shown by a count, a guess suffices to say that it still is so: to count each body would cost too much.
    counted = bool(passage.weight) or before.truncated or (case is not None and case.exact)
    standing = passage.standing if passage.effective else ()
    far_below = counted and 2 * reported < estimate
    alike = (before.counted, before.standing) == (counted, standing) and before.reported > 0
    stuck = alike and estimate - before.estimate > max(_GROWN, before.estimate // 20) and reported <= before.reported
    plausible = estimate >= _LEAST and reported >= max(_LEAST_READ, _KEPT * before.peak)
    truncated = plausible and (far_below or stuck)
    return Weight(estimate, counted, reported, standing, max(before.peak, reported), truncated)


def warning(weight: Weight, model: str) -> str:
    """Gives what is to be known and done, in words."""
    return (
        f"the upstream says to have read {weight.reported} of about {weight.estimate} tokens: it has dropped the oldest"
        f" or it doesn't count what it has cached; set the window of {model} under models ({weight.peak} tokens do fit)"
    )
