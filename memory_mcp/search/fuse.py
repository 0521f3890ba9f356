"""The fusion formula: one score out of several.

    a·minmax(cosine) + (1−a)·(share + the session term) + the date term + the speaker term + the graph term + freshness,    share = bm25/max(bm25)

over the union of the candidates, with both scores for every one of them. Why no reciprocal ranks, and what else was tried: docs/decisions/0005-fusion.md; dates, speakers and sessions: docs/decisions/0010-dates-speakers-sessions.md; the graph: docs/graph.md.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import apsw

from memory_mcp.config.settings import Decay, Fusion
from memory_mcp.domain import Candidate, Origin, TimeRange
from memory_mcp.store import memory_usage
from memory_mcp.store.timestamps import to_text
from memory_mcp.text.forgetting_curve import forgetting_curve

# The number of other memories of its session that support a memory.
WITNESSES = 5


@dataclass(frozen=True, slots=True)
class Hints:
    """The dates and speakers that the query names; and by candidate id: its origin, its share from the graph, and what `decay` adds."""

    dates: Sequence[TimeRange]
    speakers: Collection[str]
    origins: Mapping[int, Origin]
    graph: Mapping[int, float] = field(default_factory=dict)
    freshness: Mapping[int, float] = field(default_factory=dict)


def fuse(candidates: Sequence[Candidate], settings: Fusion, hints: Hints, dense_weight: float | None = None) -> list[Candidate]:
    """The candidates with their scores, best first; of equals the later one in time.

    A candidate without a vector is scored by its words alone. `dense_weight` overrides the one of the settings.
    """
    lexical = [candidate.lexical or 0.0 for candidate in candidates]
    cosines = [candidate.dense for candidate in candidates if candidate.dense is not None]
    weight = (settings.dense_weight if dense_weight is None else dense_weight) if cosines else 0.0
    top = max(lexical, default=0.0) or 1.0
    low, span = (min(cosines), (max(cosines) - min(cosines)) or 1.0) if cosines else (0.0, 1.0)
    shares = [words / top for words in lexical]
    origins = [hints.origins[candidate.memory_id] for candidate in candidates]
    graph_weight = settings.graph_weight_dense if cosines else settings.graph_weight
    of_named_dates = _happened_in(hints.dates, origins)
    for candidate, share, session_share, origin in zip(candidates, shares, _session_shares(shares, origins), origins, strict=True):
        meaning = share if candidate.dense is None else (candidate.dense - low) / span
        words = share + settings.session_weight * session_share
        candidate.lexical_share, candidate.session_share = share, session_share
        candidate.in_named_date = origin.happened in of_named_dates
        candidate.by_named_speaker = origin.source in hints.speakers
        candidate.freshness = hints.freshness.get(candidate.memory_id, 0.0)
        candidate.graph_share = hints.graph.get(candidate.memory_id, 0.0)
        named = settings.date_boost * candidate.in_named_date + settings.speaker_boost * candidate.by_named_speaker
        associated = graph_weight * candidate.graph_share
        candidate.score = weight * meaning + (1 - weight) * words + named + associated + candidate.freshness
    return best_first(candidates, hints.origins)


def freshness(connection: apsw.Connection, memory_ids: Sequence[int], decay: Decay, now: datetime) -> Mapping[int, float]:
    """For each of these memories `decay.weight` x its retention; nothing, and no query, while the weight is 0."""
    if not decay.weight:
        return {}
    found = memory_usage.usage(connection, memory_ids)
    return {
        memory_id: decay.weight * forgetting_curve(touched, importance, uses, now, decay.half_life_days)
        for memory_id, (touched, importance, uses) in found.items()
    }


def best_first(candidates: Iterable[Candidate], origins: Mapping[int, Origin]) -> list[Candidate]:
    """By their scores; of equals the later one in time."""
    return sorted(candidates, key=lambda candidate: (candidate.score, origins[candidate.memory_id].happened), reverse=True)


def _happened_in(dates: Iterable[TimeRange], origins: Collection[Origin]) -> set[str]:
    """The moments of these origins that are in one of the dates."""
    days = [(to_text(date.start), to_text(date.end)) for date in dates]
    return {origin.happened for start, end in days for origin in origins if start <= origin.happened < end}


def _session_shares(shares: Sequence[float], origins: Sequence[Origin]) -> list[float]:
    """For each candidate the mean share of the best others from its session; fewer than `WITNESSES` count as if the rest had none."""
    by_session = defaultdict(list)
    for share, origin in zip(shares, origins, strict=True):
        by_session[origin.session_id].append(share)
    best = {
        session: sorted(of_session, reverse=True)[: WITNESSES + 1]
        for session, of_session in by_session.items()
        if session and len(of_session) > 1
    }
    return [
        _sum_of_others(best[origin.session_id], share) / WITNESSES if origin.session_id in best else 0.0
        for share, origin in zip(shares, origins, strict=True)
    ]


def _sum_of_others(best: Sequence[float], own: float) -> float:
    """The sum of the best shares of a session without its own."""
    own_is_among = own >= best[-1]
    return sum(best[:-1] if not own_is_among and len(best) > WITNESSES else best) - (own if own_is_among else 0.0)
