"""Reranking: a cross-encoder reads query and memory together, and what it finds is added to the fused score, within a deadline.

    score = fused score + rerank_weight x (logit - mean logit of what was read) / spread of the model

What keeps only a share of its fused score keeps that share of the term's distance from the lowest. What was not read keeps its score and its place: where
what was read would fall behind it, all that was read rises by as much (docs/decisions/0057-a-reranker-adds.md). Without a reranker, or without time for
one, the pool keeps its fused order, and the answer gives the reason. The deadline is `rerank_deadline_ms` of the configuration, counted from the start of
the call.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from memory_mcp.config.settings import Settings
from memory_mcp.domain import Candidate, Memory, Question
from memory_mcp.encoders.models import Models, Reranker
from memory_mcp.encoders.spread import logit
from memory_mcp.errors import EncoderFailed
from memory_mcp.language.budget import Span, best_window, estimate_tokens, excerpt
from memory_mcp.tracing import spanned

# The 512 tokens of a cross-encoder without those of a query of usual length.
PASSAGE_TOKENS = 480

# Characters of a memory that are read where there is no time for more: those that share most words with the query. Most memories are shorter.
PART_CHARACTERS = 160


# So many spreads from the mean a memory gains or loses at most: a score next to 0 or 1 says no more than that.
MOST_SPREADS = 3.0


@dataclass(frozen=True, slots=True)
class Reranked:
    """The pool in its order. `done`: whether a cross-encoder read it. `skipped`: why a configured one did not, or not completely."""

    pool: Sequence[Candidate]
    done: bool = False
    skipped: str | None = None


def rerank_deadline(settings: Settings, arrived: float) -> float | None:
    """When reranking must end, in seconds of `time.monotonic`, counted from the call's arrival: waiting for a thread counts too. None: never."""
    return arrived + settings.rerank_deadline_ms / 1000 if settings.rerank_deadline_ms else None


@spanned("rerank")
def rerank(
    pool: Sequence[Candidate],
    question: Question,
    passages: Mapping[int, str],
    part_of: Callable[[int], str],
    models: Models,
    settings: Settings,
    deadline: float | None,
) -> Reranked:
    """The pool by the fused score and what the cross-encoder adds to it."""
    reranker = models.reranker
    if reranker is None:
        state = models.reranker_state.state
        return Reranked(pool, skipped=None if state == "off" else f"reranker_{state}")
    if not pool:
        return Reranked(pool, done=True)
    if not reranker.covers(question.query):
        return Reranked(pool, skipped="reranker_language")
    try:
        read = pool[: question.top_k] if _is_late(settings, deadline) else pool
        scores, cut = _scores(
            reranker, question, {candidate.memory_id: passages[candidate.memory_id] for candidate in read}, part_of, deadline
        )
    except EncoderFailed:
        return Reranked(pool, skipped="reranker_failed")
    if scores is None:
        return Reranked(pool, skipped="rerank_deadline")
    weight, found = settings.fusion.rerank_weight, in_spreads(scores, reranker.spread)
    lowest = min(found)
    scored = [
        replace(candidate, rerank=score, score=candidate.score + weight * (lowest + candidate.kept * (spreads - lowest)))
        for candidate, score, spreads in zip(pool, scores, found, strict=False)
    ]
    unread = pool[len(scored) :]
    if unread:
        below = max(0.0, unread[0].score - min(candidate.score for candidate in scored))
        for candidate in scored:
            candidate.score += below
    shortened = "rerank_cut" if cut else "rerank_shortened" if unread else None
    return Reranked([*sorted(scored, key=lambda candidate: -candidate.score), *unread], done=True, skipped=shortened)


def in_spreads(scores: Sequence[float], spread: float) -> list[float]:
    """How many spreads of the model each score is above the mean of these, by their logits; at most `MOST_SPREADS` in both directions."""
    logits = [logit(score) for score in scores]
    mean = sum(logits) / len(logits)
    return [min(max((value - mean) / spread, -MOST_SPREADS), MOST_SPREADS) for value in logits]


def _is_late(settings: Settings, deadline: float | None) -> bool:
    """Whether more than half of the time to rerank has gone by: then others wait as long, and what is not shown would take their time."""
    return deadline is not None and deadline - time.monotonic() < settings.rerank_deadline_ms / 2_000


def _scores(
    reranker: Reranker, question: Question, texts: Mapping[int, str], part_of: Callable[[int], str], deadline: float | None
) -> tuple[list[float] | None, bool]:
    """The scores of all candidates, or, without time for all, of those that the page can show; and whether only a part of each was read."""
    scores = reranker.score(question.query, list(texts.values()), deadline, question.top_k)
    shown = list(texts)[: question.top_k]
    if scores is not None or all(len(texts[memory_id]) <= PART_CHARACTERS for memory_id in shown):
        return scores, False
    parts = [texts[memory_id] if len(texts[memory_id]) <= PART_CHARACTERS else part_of(memory_id) for memory_id in shown]
    return reranker.score(question.query, parts, deadline), True


def part(memory: Memory, words: Sequence[str], best_part: Span) -> str:
    """The `PART_CHARACTERS` of a memory's best part that contain most of the words, or its beginning if it contains none."""
    start, end = best_window(memory.content, words, best_part, PART_CHARACTERS)
    return memory.content[start : min(end, start + PART_CHARACTERS)].strip()


def passage(memory: Memory, best_part: Callable[[Memory], Span]) -> str:
    """The text of a memory that the cross-encoder reads: its source and content; of a long one the best part and what fits around it."""
    whole = estimate_tokens(memory.content) <= PASSAGE_TOKENS
    content = memory.content if whole else excerpt(memory.content, best_part(memory), PASSAGE_TOKENS)
    return f"{memory.source}: {content}" if memory.source else content
