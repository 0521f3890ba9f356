"""Chooses the hits of an answer: those that reach the minimum score, cut to fit the token budget."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from memory_mcp.config.settings import Settings
from memory_mcp.domain import Candidate, Confirmation, Detail, Hit, Memory
from memory_mcp.encoders.model_families import own_name
from memory_mcp.encoders.models import Models
from memory_mcp.language.budget import cut_to_tokens, estimate_tokens
from memory_mcp.language.chunk import CHUNK_CHARACTERS, micro_summary
from memory_mcp.language.excerpt import WINDOW_CHARACTERS, Span, excerpt
from memory_mcp.search.meaning import Meaning
from memory_mcp.tracing import spanned

# Tokens of a hit besides its text, where an answer is read as text: key, dates and age, and punctuation.
HIT_OVERHEAD_TOKENS = 14
WORTH_CUTTING_TOKENS = 40
# Tokens of the first hit's text that are always shown, whatever its labels cost.
LEAST_TEXT_TOKENS = 12
NOWHERE: Span = (0, 0)
NOT_READ: Mapping[int, Confirmation] = {}


@dataclass(frozen=True, slots=True)
class Floor:
    """The value that a candidate needs to be a hit, `by` its score, its cosine, or the score of the cross-encoder. 0 passes everything."""

    least: float = 0.0
    by: Literal["score", "cosine", "reranker"] = "score"

    def measure(self, candidate: Candidate) -> float:
        """The value to compare with the floor. One of a named date reaches that of a model. A candidate without a cosine yet does, too; one that the
        cross-encoder did not read doesn't.
        """
        if self.by == "score":
            return candidate.score
        if candidate.date_share:
            return 1.0
        if self.by == "reranker":
            return candidate.rerank or 0.0
        return 1.0 if candidate.dense is None else candidate.dense

    def passing(self, candidates: Sequence[Candidate]) -> Sequence[Candidate]:
        """The candidates that reach it, in their order."""
        return [candidate for candidate in candidates if self.measure(candidate) >= self.least] if self.least else candidates


def floor_for(settings: Settings, models: Models, meaning: Meaning, *, reranked: bool) -> Floor:
    """The floor of an answer, on the scale of the model that judges its hits.

    It is that of `min_scores`, or `min_score`, for the cross-encoder if it read the hits, or that of the embedding model if that was used, else
    `min_score`.
    """
    embedder = models.of_generation(meaning.generation) if meaning.index else None
    if reranked and models.reranker:
        return Floor(_of_model(settings, models.reranker.name, settings.min_score), by="reranker")
    by_cosine = _of_model(settings, embedder.name) if embedder else 0.0
    return Floor(by_cosine, by="cosine") if by_cosine else Floor(settings.min_score)


def _of_model(settings: Settings, name: str, otherwise: float = 0.0) -> float:
    """The value in `min_scores` for the model's name, with or without its organization or directory."""
    floors = settings.min_scores
    return floors.get(name, next((least for model, least in floors.items() if own_name(model) == own_name(name)), otherwise))


@spanned("page")
def within_budget(
    ranked: Sequence[tuple[Memory, float, Mapping[str, Any]]],
    detail: Detail,
    max_tokens: int,
    best_part: Callable[[Memory], Span] | None = None,
    *,
    words: Sequence[str] = (),
    with_metadata: bool = False,
    confirmed: Mapping[int, Confirmation] = NOT_READ,
) -> tuple[Hit, ...]:
    """As many hits, in order, as `max_tokens` allows; at least one, cut if necessary. `detail="index"` shows one line of each.

    A cut memory shows the part around its best span if that is known (of a span that is too long the part with most of `words`), else its
    beginning. A long memory with others after it gets half of the rest. Metadata are shown if wanted and if they fit as a whole.
    """
    hits: list[Hit] = []
    left = max_tokens
    for rank, (memory, score, why) in enumerate(ranked, start=1):
        text = (memory.micro_summary or micro_summary(memory.content)) if detail == "index" else memory.content
        part = best_part(memory) if best_part and detail != "index" and len(text) > WINDOW_CHARACTERS else NOWHERE
        overhead = labels_cost(memory)
        room = left - overhead
        cost = estimate_tokens(text)
        if hits and room < min(cost, WORTH_CUTTING_TOKENS):
            break
        halved = detail != "index" and len(text) > CHUNK_CHARACTERS and rank < len(ranked)
        budget = max(room // 2 if halved else room, 1 if hits else LEAST_TEXT_TOKENS)
        shown = _cut(text, part, budget, words)
        left -= overhead + estimate_tokens(shown)
        metadata_tokens = estimate_tokens(json.dumps(memory.metadata, ensure_ascii=False)) if with_metadata and memory.metadata else 0
        fits = 0 < metadata_tokens <= left
        left -= metadata_tokens if fits else 0
        hits.append(
            Hit(
                memory,
                round(score, 4),
                why,
                shown,
                truncated=shown != memory.content,
                with_metadata=fits,
                best_part=part,
                confirmation=confirmed.get(memory.id),
            )
        )
        if shown != text and not halved:
            break
    return tuple(hits)


def labels_cost(memory: Memory) -> int:
    """The tokens of a hit of this memory besides its text."""
    return HIT_OVERHEAD_TOKENS + estimate_tokens("".join([memory.source or "", memory.category or "", *memory.tags]))


def cut_to(hit: Hit, budget: int, words: Sequence[str]) -> str:
    """The part of a hit's memory that costs at most `budget` tokens: around its best span if that is known, else its beginning."""
    return _cut(hit.memory.content, hit.best_part, budget, words)


def _cut(text: str, around: Span, budget: int, words: Sequence[str]) -> str:
    return excerpt(text, around, budget, words) if any(around) else cut_to_tokens(text, budget)


def why(candidate: Candidate) -> dict[str, Any]:
    """The parts of a candidate's score by source, as the answer explains it."""
    shares = {
        "lexical": candidate.lexical_share,
        "session": candidate.session_share or None,
        "graph": candidate.graph_share or None,
        "dense": candidate.dense,
        "rerank": candidate.rerank,
        "freshness": candidate.freshness or None,
        "judged": candidate.judged or None,
    }
    explained: dict[str, Any] = {name: round(value, 3) for name, value in shares.items() if value is not None}
    named = {"date": candidate.date_share > 0, "speaker": candidate.by_named_speaker}
    return {**explained, **{name: True for name, is_named in named.items() if is_named}}
