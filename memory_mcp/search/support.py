"""Which candidates anything speaks for: words, a meaning, a named date or speaker, the graph. The rest are no hits.

Every candidate shares some word with the question, or an entity with its best match; nothing more speaks for most answers to what nobody told.
"""

from collections.abc import Collection, Mapping, Sequence

from memory_mcp.domain import Candidate

# The share of the best match's words that a hit has. What others of its session share counts half.
LEAST_WORDS, SESSION_WEIGHT = 0.28, 0.5
# The share of the best match's nearness that a hit has.
LEAST_NEARNESS = 0.5


def supported(
    ranked: Sequence[Candidate],
    questions: Mapping[int, int],
    associated: Collection[int] = (),
    *,
    in_small_store: bool,
    are_apart: bool = False,
) -> list[Candidate]:
    """The candidates that something speaks for, in their order. `associated` are those that the graph alone makes hits;
    `questions` the turns that ask what another answers, which is a hit where they are.

    In a small store every shared word is enough. Nearness counts where vectors `are_apart` from what all share; elsewhere all may be near, and none
    is left out.
    """
    nearness = [candidate.nearness for candidate in ranked if candidate.nearness is not None]
    if nearness and not are_apart:
        return list(ranked)
    nearest = max(nearness, default=0.0)
    least_near = nearest - (1 - LEAST_NEARNESS) * abs(nearest)
    least = 0.0 if in_small_store else LEAST_WORDS * max((candidate.lexical or 0.0 for candidate in ranked), default=0.0)
    hits = {
        candidate.memory_id
        for candidate in ranked
        if candidate.memory_id in associated or _is_supported(candidate, least) or (nearness and _is_near(candidate, least_near))
    }
    return [candidate for candidate in ranked if candidate.memory_id in hits or questions.get(candidate.memory_id) in hits]


def _is_supported(candidate: Candidate, least: float) -> bool:
    words = candidate.lexical or 0.0
    by_session = SESSION_WEIGHT / LEAST_WORDS * candidate.session_share * least
    return bool(candidate.date_share or candidate.by_named_speaker or (words > 0 and words + by_session >= least))


def _is_near(candidate: Candidate, least: float) -> bool:
    """Whether the meaning speaks for it, or may do so: it has no vector yet."""
    return candidate.nearness is None or candidate.nearness >= least
