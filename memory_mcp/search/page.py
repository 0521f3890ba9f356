"""From ranked candidates to the hits that fit an answer."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from memory_mcp.domain import Candidate, Detail, Hit, Memory
from memory_mcp.text.budget import cut_to_tokens, estimate_tokens
from memory_mcp.text.micro_summary import micro_summary

# What a hit costs beside its text: key, dates, score and punctuation.
HIT_OVERHEAD_TOKENS = 60
WORTH_CUTTING_TOKENS = 40


def within_budget(
    ranked: Sequence[tuple[Memory, float, Mapping[str, Any]]], detail: Detail, max_tokens: int, with_metadata: bool = False
) -> tuple[Hit, ...]:
    """As many hits, in order, as `max_tokens` allows; at least one, cut if need be. `index` shows one line of each.

    Metadata are shown where they are wanted and fit as a whole.
    """
    hits: list[Hit] = []
    left = max_tokens
    for memory, score, why in ranked:
        text = (memory.micro_summary or micro_summary(memory.content)) if detail == "index" else memory.content
        overhead = HIT_OVERHEAD_TOKENS + estimate_tokens(
            "".join([memory.source or "", memory.session_id or "", memory.category or "", *memory.tags])
        )
        room = left - overhead
        if hits and room < min(estimate_tokens(text), WORTH_CUTTING_TOKENS):
            break
        shown = cut_to_tokens(text, max(room, 1))
        left -= overhead + estimate_tokens(shown)
        beside = estimate_tokens(json.dumps(memory.metadata, ensure_ascii=False)) if with_metadata and memory.metadata else 0
        fits = 0 < beside <= left
        left -= beside if fits else 0
        hits.append(Hit(memory, round(score, 4), why, shown, truncated=shown != memory.content, with_metadata=fits))
        if shown != text:
            break
    return tuple(hits)


def why(candidate: Candidate) -> dict[str, Any]:
    """What each source thought of a candidate, for a reader who wonders why it is here."""
    opinions = {
        "lexical": candidate.lexical_share,
        "session": candidate.session_share or None,
        "graph": candidate.graph_share or None,
        "dense": candidate.dense,
        "rerank": candidate.rerank,
    }
    told: dict[str, Any] = {name: round(value, 3) for name, value in opinions.items() if value is not None}
    named = {"date": candidate.in_named_date, "speaker": candidate.by_named_speaker}
    return {**told, **{name: True for name, is_named in named.items() if is_named}}
