"""How sure an answer is as a whole: whether its hits hold what was asked for, or nobody ever said anything like it.

    log-odds = bias + Σ weight · evidence

The evidence is of the first hits and compares them with the persona's other memories, never with a fixed score, so it means the same in a store of ten
memories and of ten thousand. Weights and limits are fitted on questions with and without an answer by `python -m benchmarks.confidence`
(docs/decisions/0074-confidence.md). It is judged before `max_tokens` cuts the answer, and before `page.with_newer`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from memory_mcp.domain import Confidence
from memory_mcp.search.candidates import Column
from memory_mcp.search.page import Best
from memory_mcp.search.signals import Scored, contribution
from memory_mcp.tracing import spanned

# The hits that an answer shows first.
FIRST = 5
# Words of another language than a hit's say nothing: half of them count as held.
UNKNOWN_SHARE = 0.5


class Evidence(NamedTuple):
    """What speaks for an answer.

    `held` and `lacking`: the sum of how rare the words of the question are, from 0 to 1 each, which the first hit has, and which it lacks. `covered`: the
    largest share of that sum which one of the first hits has. `dated`: how far the first hit is of a date that the question names. `agreement`: the
    score of the first hit before reranking, at least 1 if it is the best by words and by meaning. `ahead`: how much nearer the nearest memory is than the next one, as
    a share of its nearness. The last two are 0 without vectors.
    """

    held: float
    lacking: float
    covered: float
    dated: float
    agreement: float
    ahead: float


@dataclass(frozen=True, slots=True)
class Fitted:
    """The weights of the evidence, and the log-odds below which nothing is like the question, and from which an answer is sure."""

    bias: float
    weights: Evidence
    nothing: float
    sure: float

    def odds(self, evidence: Evidence) -> float:
        """The log-odds that the answer holds what was asked for."""
        return self.bias + sum(weight * value for weight, value in zip(self.weights, evidence, strict=True))

    def called(self, evidence: Evidence) -> Confidence:
        """What an answer with this evidence is called."""
        odds = self.odds(evidence)
        return "sure" if odds >= self.sure else "nothing like it" if odds < self.nothing else "maybe"


WITH_VECTORS = Fitted(
    -5.76, Evidence(held=0.34, lacking=0.15, covered=2.17, dated=0.09, agreement=3.08, ahead=1.59), nothing=-1.7, sure=0.82
)
BY_WORDS = Fitted(-1.78, Evidence(held=0.36, lacking=0.07, covered=1.89, dated=1.66, agreement=0.0, ahead=0.0), nothing=-1.46, sure=1.11)


@spanned("confidence")
def confidence(scored: Scored, rows: Sequence[int], best: Best) -> Confidence | None:
    """How sure the answer is that shows these rows, best first, of those that were read. None where a time, a date range or the
    graph chose them (`is_judged`); "nothing like it" without a row."""
    if not scored.parsed.is_judged:
        return None
    if not rows:
        return "nothing like it"
    fitted = WITH_VECTORS if scored.candidates.has_vectors else BY_WORDS
    return fitted.called(evidence(scored, rows, best))


def evidence(scored: Scored, rows: Sequence[int], best: Best) -> Evidence:
    """What speaks for an answer of these rows, of which there is at least one."""
    candidates, first = scored.candidates, rows[0]
    store = candidates.keys[first][0]
    whole = best.asked[store]
    of_store = (row for row in rows[:FIRST] if candidates.keys[row][0] == store)
    held = {row: UNKNOWN_SHARE * whole if candidates.is_foreign[row] else best.held[row] for row in of_store}
    has_vectors = candidates.has_vectors
    return Evidence(
        held=held[first],
        lacking=whole - held[first],
        covered=max(held.values()) / whole if whole else 0.0,
        dated=float(candidates.dates[first]),
        agreement=float(scored.score[first] - contribution(scored, "reranker")[first]) if has_vectors else 0.0,
        ahead=_ahead(candidates.nearness) if has_vectors else 0.0,
    )


def _ahead(nearness: Column) -> float:
    """How much nearer the nearest is than the next, as a share of its nearness; of a single memory all of it."""
    known = np.sort(nearness[~np.isnan(nearness)])[::-1]
    if len(known) < 2 or known[0] <= 0:
        return float(len(known) == 1)
    return float(min((known[0] - known[1]) / known[0], 1.0))
