"""Reranking: a cross-encoder reads query and memory together; what it finds is a signal beside the others, within a deadline.

    value = (logit − mean logit of what was read) / spread of the model, without the `UNCERTAIN_SPREADS` next to the mean

What keeps only a share of its score keeps that share of the value's distance from the lowest. What was not read keeps its score and
its place: where what was read would fall behind it, all that was read rises by as much (docs/decisions/0057-a-reranker-adds.md).
Without a reranker, or without time for one, the order stays, and the answer gives the reason. The deadline is `rerank_deadline_ms`
of the configuration, counted from the start of the call.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from memory_mcp.config.settings import Settings
from memory_mcp.domain import Memory
from memory_mcp.encoders.models import Reranker
from memory_mcp.encoders.spread import logit
from memory_mcp.errors import EncoderFailed
from memory_mcp.language.budget import Span, best_window, estimate_tokens, excerpt
from memory_mcp.search.candidates import Candidates, Column
from memory_mcp.search.question import ParsedQuestion
from memory_mcp.search.signals import Scored, kept_shares
from memory_mcp.tracing import spanned

# The 512 tokens of a cross-encoder without those of a query of usual length.
PASSAGE_TOKENS = 480
# Characters of a memory that are read where there is no time for more: those that share most words with the query. Most memories
# are shorter.
PART_CHARACTERS = 160
# So many spreads from the mean a memory gains or loses at most: a score next to 0 or 1 says no more than that.
MOST_SPREADS = 2.0
# So near to the mean a model does not tell what answers from what does not: words, meaning and dates decide.
UNCERTAIN_SPREADS = 0.6
# What was read stays before what wasn't.
_BEFORE = 1e-9


@dataclass(frozen=True, slots=True)
class Reranked:
    """The candidates with what a cross-encoder found. `done`: whether it read any. `skipped`: why a configured one did not, or not
    completely."""

    candidates: Candidates
    done: bool = False
    skipped: str | None = None


def rerank_deadline(settings: Settings, arrived: float) -> float | None:
    """When reranking must end, in seconds of `time.monotonic`, counted from the call's arrival: waiting for a thread counts too.
    None: never."""
    return arrived + settings.rerank_deadline_ms / 1000 if settings.rerank_deadline_ms else None


@spanned("rerank")
def rerank(
    scored: Scored,
    head: Sequence[int],
    passage_of: Callable[[int], str],
    short_passage_of: Callable[[int], str],
    reranker: Reranker,
    deadline: float | None,
) -> Reranked:
    """The candidates with the signal of the cross-encoder for the rows of the `head`, best first, or those of them that it has time for."""
    candidates, parsed = scored.candidates, scored.parsed
    if not head:
        return Reranked(candidates, done=True)
    if not reranker.covers(parsed.question.query):
        return Reranked(candidates, skipped="reranker_language")
    read = head[: parsed.question.top_k] if _is_late(parsed.settings, deadline) else head
    try:
        scores, cut = _scores(reranker, parsed, [passage_of(row) for row in read], lambda index: short_passage_of(read[index]), deadline)
    except EncoderFailed:
        return Reranked(candidates, skipped="reranker_failed")
    if scores is None:
        return Reranked(candidates, skipped="rerank_deadline")
    rows, unread = list(head[: len(scores)]), head[len(scores) :]
    cross_score, cross_value = candidates.cross_score.copy(), candidates.cross_value.copy()
    cross_score[rows], cross_value[rows] = scores, _values(scored, rows, in_spreads(scores, reranker.spread), unread)
    shortened = "rerank_cut" if cut else "rerank_shortened" if unread else None
    return Reranked(replace(candidates, cross_score=cross_score, cross_value=cross_value), done=True, skipped=shortened)


def in_spreads(scores: Sequence[float], spread: float) -> Column:
    """How many spreads of the model each score is above the mean of these, by their logits, or below it: those beyond
    `UNCERTAIN_SPREADS`, up to `MOST_SPREADS`."""
    logits = np.array([logit(score) for score in scores])
    spreads: Column = np.clip((logits - logits.mean()) / spread, -MOST_SPREADS, MOST_SPREADS)
    return np.sign(spreads) * np.maximum(np.abs(spreads) - UNCERTAIN_SPREADS, 0.0)


def _values(scored: Scored, rows: Sequence[int], spreads: Column, unread: Sequence[int]) -> Column:
    lowest, weight = spreads.min(), scored.fusion.rerank_weight
    values: Column = lowest + kept_shares(scored.candidates)[rows] * (spreads - lowest)
    if unread and weight:
        behind = scored.score[unread[0]] + _BEFORE - (scored.score[rows] + weight * values).min()
        values = values + max(0.0, float(behind)) / weight
    return values


def _is_late(settings: Settings, deadline: float | None) -> bool:
    """Whether more than half of the time to rerank has gone by: then others wait as long, and what is not shown would take their time."""
    return deadline is not None and deadline - time.monotonic() < settings.rerank_deadline_ms / 2_000


def _scores(
    reranker: Reranker, parsed: ParsedQuestion, texts: Sequence[str], short_passage_of: Callable[[int], str], deadline: float | None
) -> tuple[list[float] | None, bool]:
    """The scores of all texts, or, without time for all, of those that the page can show; and whether only a part of each was read."""
    query, count = parsed.question.query, parsed.question.top_k
    scores = reranker.score(query, texts, deadline, count)
    if scores is not None or all(len(text) <= PART_CHARACTERS for text in texts[:count]):
        return scores, False
    parts = [text if len(text) <= PART_CHARACTERS else short_passage_of(index) for index, text in enumerate(texts[:count])]
    return reranker.score(query, parts, deadline), True


def short_passage(memory: Memory, words: Sequence[str], best_part: Span) -> str:
    """The `PART_CHARACTERS` of a memory's best part that contain most of the words, or its beginning if it contains none."""
    start, end = best_window(memory.content, words, best_part, PART_CHARACTERS)
    return memory.content[start : min(end, start + PART_CHARACTERS)].strip()


def passage(memory: Memory, best_part: Callable[[Memory], Span]) -> str:
    """The text of a memory that the cross-encoder reads: its source and content; of a long one the best part and what fits around it."""
    whole = estimate_tokens(memory.content) <= PASSAGE_TOKENS
    content = memory.content if whole else excerpt(memory.content, best_part(memory), PASSAGE_TOKENS)
    return f"{memory.source}: {content}" if memory.source else content
