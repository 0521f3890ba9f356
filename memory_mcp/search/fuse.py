"""One order out of several scores.

    a·minmax(cosine) + (1−a)·bm25/max(bm25) + the date term

over the union of the candidates, with both scores for every one of them. Why not reciprocal ranks, and what else was
tried: docs/decisions/0005-fusion.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from memory_mcp.config.settings import Fusion
from memory_mcp.domain import Candidate, TimeRange


def fuse(
    candidates: Sequence[Candidate],
    settings: Fusion,
    named: Sequence[TimeRange],
    happened: Mapping[int, datetime],
    dense_weight: float | None = None,
) -> list[Candidate]:
    """The candidates with `score` set, best first; of equals the later one in time.

    `named` holds the dates that the query names, `happened` the event time of each candidate. A candidate that has no vector
    yet is judged by its words alone; where none has one, all are. `dense_weight` goes before the one of the settings.
    """
    lexical = [candidate.lexical or 0.0 for candidate in candidates]
    cosines = [candidate.dense for candidate in candidates if candidate.dense is not None]
    weight = (settings.dense_weight if dense_weight is None else dense_weight) if cosines else 0.0
    top = max(lexical, default=0.0) or 1.0
    low, span = (min(cosines), (max(cosines) - min(cosines)) or 1.0) if cosines else (0.0, 1.0)
    scored = []
    for candidate, words in zip(candidates, lexical, strict=True):
        share = words / top
        meaning = share if candidate.dense is None else (candidate.dense - low) / span
        in_named_date = any(happened[candidate.memory_id] in date for date in named)
        score = weight * meaning + (1 - weight) * share + settings.date_boost * in_named_date
        scored.append(replace(candidate, score=score, lexical_share=share, in_named_date=in_named_date))
    return sorted(scored, key=lambda candidate: (-candidate.score, -happened[candidate.memory_id].timestamp()))
