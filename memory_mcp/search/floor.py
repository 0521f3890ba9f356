"""The score that a candidate needs to be a hit: `min_score`, or a value of `min_scores` on the scale of the model that scored it."""

from collections.abc import Sequence
from dataclasses import dataclass

from memory_mcp.config.settings import Settings
from memory_mcp.domain import Candidate
from memory_mcp.encoders.model_families import own_name
from memory_mcp.encoders.models import Models
from memory_mcp.search.meaning import Meaning


@dataclass(frozen=True, slots=True)
class Floor:
    """`least` is a score, or a cosine with `by_cosine`. 0 passes everything."""

    least: float = 0.0
    by_cosine: bool = False

    def measure(self, candidate: Candidate) -> float:
        """The value to compare with the floor. A candidate without a cosine yet passes, and so does one of a named date."""
        if not self.by_cosine:
            return candidate.score
        return 1.0 if candidate.dense is None or candidate.in_named_date else candidate.dense

    def passing(self, candidates: Sequence[Candidate]) -> Sequence[Candidate]:
        """The candidates that reach it, in their order."""
        return [candidate for candidate in candidates if self.measure(candidate) >= self.least] if self.least else candidates


def floor_for(settings: Settings, models: Models, meaning: Meaning, *, reranked: bool) -> Floor:
    """The floor of an answer: of the cross-encoder if it ordered the hits, of the embedding model if that was used, else `min_score`."""
    embedder = models.of_generation(meaning.generation) if meaning.index else None
    if reranked and models.reranker:
        return Floor(_of_model(settings, models.reranker.name, settings.min_score))
    by_cosine = _of_model(settings, embedder.name) if embedder else 0.0
    return Floor(by_cosine, by_cosine=True) if by_cosine else Floor(settings.min_score)


def _of_model(settings: Settings, name: str, otherwise: float = 0.0) -> float:
    """By the name in `min_scores`, with or without its organisation or directory."""
    floors = settings.min_scores
    return floors.get(name, next((least for model, least in floors.items() if own_name(model) == own_name(name)), otherwise))
