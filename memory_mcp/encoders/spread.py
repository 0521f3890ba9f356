"""How far apart a cross-encoder scores ordinary passages: the unit in which its scores count beside those of other models.

One cross-encoder answers from -2 to 2 before its sigmoid and another from -10 to 10. What a difference of 1 means follows from how they score the same
questions and passages (docs/decisions/0057-a-reranker-adds.md).
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

from memory_mcp.encoders.centers import LANGUAGES
from memory_mcp.encoders.languages import covers

# A score of 0 or 1 has no logit; nearer to them than this, a model in half precision can't tell scores apart.
NEAREST_TO_CERTAIN = 1e-6
# Of common models; for one that was not asked.
USUAL_SPREAD = 2.0
# A model that scores what answers a question and what doesn't closer together than this has not learned to: its noise must not be magnified.
LEAST_SPREAD = 0.5


def logit(score: float) -> float:
    """The value whose sigmoid is a score from 0 to 1; finite for both ends."""
    within = min(max(score, NEAREST_TO_CERTAIN), 1 - NEAREST_TO_CERTAIN)
    return math.log(within / (1 - within))


def spread_of(predict: Callable[[list[tuple[str, str]]], Sequence[float]], languages: Sequence[str] | None = None) -> float:
    """The standard deviation of a model's logits among the passages of one question, over the built-in questions in its `languages`.

    `predict` maps pairs of a question and a passage to scores from 0 to 1.
    """
    logits = [
        [logit(score) for score in predict([(question, passage) for passage in passages])] for question, passages in built_in(languages)
    ]
    return max(math.sqrt(float(np.mean([np.var(row) for row in logits]))), LEAST_SPREAD)


def built_in(languages: Sequence[str] | None) -> list[tuple[str, tuple[str, ...]]]:
    """Ordinary questions in these languages, two in each, with nine passages of which one answers it."""
    known = [language for language in LANGUAGES if covers(languages, language.questions[0])] or LANGUAGES
    return [(question, language.passages) for language in known for question in language.answered]
