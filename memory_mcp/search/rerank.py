"""The cross-encoder's step, between the pool and the page: it reads query and memory together, and its order stands.

Without a reranker, or in time for none, the pool keeps its fused order, and the answer says why.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from memory_mcp.config.settings import Settings
from memory_mcp.domain import Candidate, Memory, Question
from memory_mcp.encoders.models import Models
from memory_mcp.errors import EncoderFailed
from memory_mcp.text.chunk import CHUNK_CHARACTERS


@dataclass(frozen=True, slots=True)
class Reranked:
    """The pool in its order. `done` tells whether a cross-encoder made it; `skipped` why not, or not whole, where one is configured."""

    pool: Sequence[Candidate]
    done: bool = False
    skipped: str | None = None


def rerank(
    pool: Sequence[Candidate], question: Question, passages: Mapping[int, str], models: Models, settings: Settings, deadline: float | None
) -> Reranked:
    """The pool by the cross-encoder's score, plus the date term: a model that reads no calendar must not undo it."""
    reranker = models.reranker
    if reranker is None:
        state = models.reranker_state.state
        return Reranked(pool, skipped=None if state == "off" else f"reranker_{state}")
    if not pool:
        return Reranked(pool, done=True)
    if not reranker.covers(question.query):
        return Reranked(pool, skipped="reranker_language")
    try:
        # Short of time, what the page can show is enough: the best of the pool by the fused order.
        scores = reranker.score(question.query, [passages[candidate.memory_id] for candidate in pool], deadline, question.top_k)
    except EncoderFailed:
        return Reranked(pool, skipped="reranker_failed")
    if scores is None:
        return Reranked(pool, skipped="rerank_deadline")
    scored = [
        replace(candidate, rerank=score, score=score + settings.fusion.date_boost * candidate.in_named_date + candidate.freshness)
        for candidate, score in zip(pool, scores, strict=False)
    ]
    # What was not read is left out: its score is on another scale.
    shortened = "rerank_shortened" if len(scored) < len(pool) else None
    return Reranked(sorted(scored, key=lambda candidate: -candidate.score), done=True, skipped=shortened)


def passage(memory: Memory, span: tuple[int, int] | None) -> str:
    """What of a memory the cross-encoder reads: who said it and what; of a long one the part that came nearest, else its beginning."""
    start, end = span if span and len(memory.content) > CHUNK_CHARACTERS else (0, CHUNK_CHARACTERS)
    said = memory.content[start:end]
    return f"{memory.source}: {said}" if memory.source else said
