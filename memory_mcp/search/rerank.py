"""The cross-encoder's step, between the pool and the page. Without a reranker it changes nothing and says so."""

from collections.abc import Sequence
from dataclasses import dataclass

from memory_mcp.domain import Candidate
from memory_mcp.encoders.models import Models


@dataclass(frozen=True, slots=True)
class Reranked:
    """The pool in its order. `done` tells whether a cross-encoder made it; `skipped` why not, where one is configured."""

    pool: Sequence[Candidate]
    done: bool = False
    skipped: str | None = None


def rerank(pool: Sequence[Candidate], models: Models) -> Reranked:
    """The pool as fused, and the reason why no cross-encoder looked at it."""
    state = models.reranker_state.state
    return Reranked(pool, skipped=None if state == "off" else f"reranker_{state}")
