"""Which current memories are near to one that was just stored: whoever wrote it may know that one of them no longer holds.

They are found by a recall, with the stored text in place of a question. It is embedded as it will be in the index, so that the index finds its vector in
the cache.
"""

import logging
from collections.abc import Collection
from concurrent.futures import Future
from datetime import datetime
from threading import Thread

from memory_mcp import time_limit
from memory_mcp.config.settings import Settings
from memory_mcp.domain import Hit, Memory, Question
from memory_mcp.encoders.model_families import ranking_of
from memory_mcp.encoders.models import Embedder, Models
from memory_mcp.errors import EncoderFailed, Overloaded, SearchUnfinished, StoreError
from memory_mcp.personas.registry import Persona
from memory_mcp.search.pipeline import recall
from memory_mcp.store import memories
from memory_mcp.store.vectors import stored_vectors
from memory_mcp.store.vectors.index_cache import IndexCache

RELATED_LIMIT = 3
# Others are found too that say nearly the same.
SPARE = 3
LONGEST = 500
# The share that a related memory has of what the words of the text count by BM25, all of which the text itself has.
LEAST_WORDS = 0.25
# So long may an answer wait for the vector, and for the search.
EMBEDDING_SECONDS, SEARCH_SECONDS = 0.3, 0.5

logger = logging.getLogger(__name__)


def related(
    persona: Persona,
    key: str,
    known: Collection[str],
    *,
    models: Models,
    settings: Settings,
    now: datetime,
    indexes: IndexCache | None,
) -> list[Memory]:
    """At most `RELATED_LIMIT` memories near to the stored one with this key, the nearest first, without those of the keys `known`; none where they can't
    be found in time."""
    few = settings.fusion.model_copy(update={"candidates_per_source": RELATED_LIMIT + SPARE})
    try:
        with time_limit.limited(SEARCH_SECONDS):
            question, embedder = _as_question(persona, key, models, settings)
            settings = settings.model_copy(update={"fusion": few})
            found = recall(persona, question, models=models, settings=settings, now=now, indexes=indexes, deadline=0.0)
    except (SearchUnfinished, StoreError, Overloaded) as error:
        logger.warning("what is related to %s of %s was not found: %s", key, persona.name, error)
        return []
    least = ranking_of(embedder.name).alike if embedder else 1.0
    others = (hit for hit in found.hits if hit.memory.key not in known and hit.memory.key != key)
    return [hit.memory for hit in others if _is_near(hit, least)][:RELATED_LIMIT]


def _as_question(persona: Persona, key: str, models: Models, settings: Settings) -> tuple[Question, Embedder | None]:
    """What the memory says as a question, and the model that embedded it; by words alone where its vector is not there in time."""
    with persona.database.read_briefly() as connection:
        stored = memories.by_keys(connection, [key])[key]
        embedder = models.of_generation(stored_vectors.serving_generation(connection))
        chunks = stored_vectors.unembedded(connection, embedder.generation, 1, settings.zone, of=[stored.id]) if embedder else []
    text = chunks[0].text if chunks and embedder and _is_embedded(embedder, chunks[0].text) else ""
    question = Question(
        stored.content[:LONGEST],
        RELATED_LIMIT + SPARE,
        "auto" if text else "keyword",
        hypothetical=text,
        detail="index",
        max_tokens=100_000,
        is_statement=True,
    )
    return question, embedder if text else None


def _is_embedded(embedder: Embedder, text: str) -> bool:
    """True once the cache has the vector of a text. The wait ends before the model does, if that takes long."""
    done: Future[bool] = Future()

    def embed() -> None:
        try:
            embedder.embed_documents([text], is_awaited=True)
            done.set_result(True)
        except EncoderFailed:
            done.set_result(False)

    if not embedder.covers(text):
        return False
    Thread(target=embed, name="related", daemon=True).start()
    try:
        return done.result(EMBEDDING_SECONDS)
    except TimeoutError:
        return False


def _is_near(hit: Hit, least: float) -> bool:
    return float(hit.why.get("lexical", 0.0)) >= LEAST_WORDS or float(hit.why.get("dense", 0.0)) >= least
