"""Which candidates anything speaks for: words, a meaning, a named date or speaker, the graph. The rest are no hits.

Every candidate shares some word with the question, or an entity with its best match; nothing more speaks for most answers to what nobody told.
"""

from collections.abc import Collection, Sequence

from memory_mcp.domain import Candidate

# The share of the best match's words that a hit has. What others of its session share counts half.
LEAST_WORDS, SESSION_WEIGHT = 0.24, 0.5


def supported(ranked: Sequence[Candidate], associated: Collection[int] = (), *, in_small_store: bool) -> list[Candidate]:
    """The candidates that something speaks for, in their order. `associated` are those that the graph alone makes hits.

    In a small store every shared word is enough. Where there are cosines, every candidate may be near in meaning: none is left out.
    """
    if any(candidate.dense is not None for candidate in ranked):
        return list(ranked)
    least = 0.0 if in_small_store else LEAST_WORDS * max((candidate.lexical or 0.0 for candidate in ranked), default=0.0)
    return [candidate for candidate in ranked if candidate.memory_id in associated or _is_supported(candidate, least)]


def _is_supported(candidate: Candidate, least: float) -> bool:
    words = candidate.lexical or 0.0
    by_session = SESSION_WEIGHT / LEAST_WORDS * candidate.session_share * least
    return bool(candidate.date_share or candidate.by_named_speaker or (words > 0 and words + by_session >= least))
