"""The cross-encoder's step, between the pool and the page: it reads query and memory together, and its order stands.

Without a reranker, or in time for none, the pool keeps its fused order, and the answer says why.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from memory_mcp.config.settings import Settings
from memory_mcp.domain import Candidate, Memory, Question
from memory_mcp.encoders.models import Models, Reranker
from memory_mcp.errors import EncoderFailed
from memory_mcp.text.budget import estimate_tokens
from memory_mcp.text.excerpt import Span, excerpt

# With a question of usual length before it, what a cross-encoder's 512 tokens hold.
PASSAGE_TOKENS = 480

# What is read of a memory where there is no time for more. Most memories are shorter.
BEGINNING_CHARACTERS = 160


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
        scores, cut = _scores(reranker, question, [passages[candidate.memory_id] for candidate in pool], deadline)
    except EncoderFailed:
        return Reranked(pool, skipped="reranker_failed")
    if scores is None:
        return Reranked(pool, skipped="rerank_deadline")
    scored = [
        replace(candidate, rerank=score, score=score + settings.fusion.date_boost * candidate.in_named_date + candidate.freshness)
        for candidate, score in zip(pool, scores, strict=False)
    ]
    # What was not read is left out: its score is on another scale.
    shortened = "rerank_cut" if cut else "rerank_shortened" if len(scored) < len(pool) else None
    return Reranked(sorted(scored, key=lambda candidate: -candidate.score), done=True, skipped=shortened)


def _scores(reranker: Reranker, question: Question, texts: Sequence[str], deadline: float | None) -> tuple[list[float] | None, bool]:
    """The scores of all, or, short of time, of what the page can show; whether only the beginnings of long ones were read for them."""
    scores = reranker.score(question.query, texts, deadline, question.top_k)
    shown = texts[: question.top_k]
    beginnings = [text[:BEGINNING_CHARACTERS] for text in shown]
    if scores is not None or beginnings == shown:
        return scores, False
    return reranker.score(question.query, beginnings, deadline), True


def passage(memory: Memory, best_part: Callable[[Memory], Span]) -> str:
    """What of a memory the cross-encoder reads: who said it and what; of a long one the best part, and as much around it as it reads."""
    whole = estimate_tokens(memory.content) <= PASSAGE_TOKENS
    said = memory.content if whole else excerpt(memory.content, best_part(memory), PASSAGE_TOKENS)
    return f"{memory.source}: {said}" if memory.source else said
