"""Fits the weights of the fusion to a persona's own judgements: one half of the judged queries chooses them, the other half tests whether they are better.

Nothing is applied here. Judgements don't change scores meanwhile: they would rank the judged memories, whatever the weights.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from memory_mcp.config.settings import Settings
from memory_mcp.encoders.models import Models
from memory_mcp.errors import InvalidInput
from memory_mcp.personas.registry import Persona
from memory_mcp.search.pipeline import recall
from memory_mcp.search.question import question
from memory_mcp.store import feedback
from memory_mcp.store.feedback import FITTED, with_weights
from memory_mcp.store.vectors.index_cache import IndexCache

LEAST_QUERIES, QUERIES_LIMIT = 20, 100
RANKS = 10
_TRIED: Mapping[str, tuple[float, ...]] = {
    "dense_weight": (0.2, 0.35, 0.5, 0.65, 0.8),
    "session_weight": (0.0, 0.3, 0.6),
    "graph_weight": (0.0, 0.2, 0.4),
    "graph_weight_dense": (0.0, 0.05, 0.15),
    "rerank_weight": (0.0, 0.1, 0.2, 0.4, 0.8),
}

Judged = tuple[str, Mapping[str, str]]  # a query, and the last verdict on each of the memories that it showed


@dataclass(frozen=True, slots=True)
class Fitted:
    """Weights and how well they rank, from 0 to 1, before and after: on the half that chose them, and on the other (`held_out`)."""

    weights: Mapping[str, float]
    queries: int
    fitted: tuple[float, float]
    held_out: tuple[float, float]

    @property
    def is_better(self) -> bool:
        """Whether the half that had no say confirms them."""
        return bool(self.weights) and self.held_out[1] > self.held_out[0]


def fit(persona: Persona, *, models: Models, settings: Settings, indexes: IndexCache | None, now: datetime) -> Fitted:
    """The weights that rank what helped before what hurt.

    Raises:
        InvalidInput: too few queries were judged.
    """
    judged = _judged(persona)
    if len(judged) < LEAST_QUERIES:
        raise InvalidInput(
            "{} judged queries are too few to fit weights to", "it takes {}", "Judge more of what recall shows", len(judged), LEAST_QUERIES
        )
    halves = [[entry for entry in judged if _half(entry[0]) == half] for half in (0, 1)]

    def score(weights: Mapping[str, float], queries: Sequence[Judged]) -> float:
        tried = with_weights(settings, {**weights, "judged_weight": 0.0})

        def keys(query: str) -> list[str]:
            asked = question(settings=tried, now=now, query=query, top_k=RANKS, detail="index", max_tokens=100_000)
            return [hit.memory.key for hit in recall(persona, asked, models=models, settings=tried, now=now, indexes=indexes).hits]

        return _mean_score(keys, queries)

    in_force = {name: getattr(settings.fusion, name) for name in FITTED}
    before = score(in_force, halves[0])
    best, best_score = in_force, before
    for name, values in _TRIED.items():
        if name == "rerank_weight" and models.reranker is None:
            continue
        for value in values:
            tried = {**best, name: value}
            if tried != best and (reached := score(tried, halves[0])) > best_score:
                best, best_score = tried, reached
    changed = {name: value for name, value in best.items() if value != in_force[name]}
    held_out = score(in_force, halves[1]), score(best, halves[1])
    return Fitted(changed, len(judged), (before, best_score), held_out)


def _mean_score(keys: Callable[[str], Sequence[str]], queries: Sequence[Judged]) -> float:
    """The mean over the queries of how early the first helpful memory comes, less how early the first harmful one does, as 1/rank; from 0 to 1."""
    total = 0.0
    for query, verdicts in queries:
        ranked = keys(query)
        first = [
            max(
                (1 / (ranked.index(key) + 1) for key, verdict in verdicts.items() if key in ranked and (verdict == "helped") == is_good),
                default=0.0,
            )
            for is_good in (True, False)
        ]
        total += (1 + first[0] - first[1]) / 2
    return round(total / len(queries), 4) if queries else 0.0


def _judged(persona: Persona) -> Sequence[Judged]:
    """The latest judged queries."""
    if not persona.exists:
        return []
    with persona.database.read() as connection:
        rows = feedback.labelled(connection)
    by_query: dict[str, dict[str, str]] = {}
    for query, key, verdict in rows:
        by_query.setdefault(query, {})[key] = verdict
    return [*by_query.items()][-QUERIES_LIMIT:]


def _half(query: str) -> int:
    return hashlib.sha256(query.encode()).digest()[0] % 2
