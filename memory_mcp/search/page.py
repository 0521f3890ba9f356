"""From ranked candidates to the hits that fit an answer."""

from collections.abc import Mapping, Sequence
from typing import Any

from memory_mcp.domain import Candidate, Detail, Hit, Memory
from memory_mcp.text.budget import cut_to_tokens, estimate_tokens, preview

# What a hit costs beside its text: key, dates, score and punctuation.
HIT_OVERHEAD_TOKENS = 60
WORTH_CUTTING_TOKENS = 40


def within_budget(ranked: Sequence[tuple[Memory, float, Mapping[str, Any]]], detail: Detail, max_tokens: int) -> tuple[Hit, ...]:
    """As many hits, in order, as `max_tokens` allows; at least one, cut if need be. `index` shows one line of each."""
    hits: list[Hit] = []
    left = max_tokens
    for memory, score, why in ranked:
        text = preview(memory.content) if detail == "index" else memory.content
        overhead = HIT_OVERHEAD_TOKENS + estimate_tokens("".join([memory.source or "", memory.session_id or "", *memory.tags]))
        room = left - overhead
        if hits and room < min(estimate_tokens(text), WORTH_CUTTING_TOKENS):
            break
        shown = cut_to_tokens(text, max(room, 1))
        hits.append(Hit(memory, round(score, 4), why, shown, truncated=shown != memory.content))
        left -= overhead + estimate_tokens(shown)
        if shown != text:
            break
    return tuple(hits)


def why(candidate: Candidate) -> dict[str, Any]:
    """What each source thought of a candidate, for a reader who wonders why it is here."""
    opinions = {
        "lexical": candidate.lexical_share,
        "session": candidate.session_share or None,
        "dense": candidate.dense,
        "rerank": candidate.rerank,
        "freshness": candidate.freshness or None,
    }
    told: dict[str, Any] = {name: round(value, 3) for name, value in opinions.items() if value is not None}
    named = {"date": candidate.in_named_date, "speaker": candidate.by_named_speaker}
    return {**told, **{name: True for name, is_named in named.items() if is_named}}
