"""Which current memories are near to one that was just stored: whoever wrote it may know that one of them no longer holds.

They are found by the search of a recall, with the stored text in place of a question.
"""

import logging
from collections.abc import Collection
from datetime import datetime

from memory_mcp import time_limit
from memory_mcp.config.settings import Settings
from memory_mcp.domain import Memory, Question
from memory_mcp.encoders.model_families import ranking_of
from memory_mcp.encoders.models import Models
from memory_mcp.encoders.worker_pool import on_behalf_of
from memory_mcp.errors import Overloaded, SearchUnfinished, StoreError
from memory_mcp.language.chunk import CHUNK_CHARACTERS
from memory_mcp.personas.registry import Persona
from memory_mcp.search import pipeline
from memory_mcp.search.time_asked import TimeAsked
from memory_mcp.store.vectors.index_cache import IndexCache

RELATED_LIMIT = 3
# Others that say nearly the same are found, too.
SPARE = 6
# The share that a related memory has of what the words of the text count by BM25, all of which the text itself has.
LEAST_WORDS = 0.25
# So long may the search for them take.
SECONDS = 0.5

logger = logging.getLogger(__name__)


def related(
    persona: Persona,
    stored: Memory,
    known: Collection[str],
    *,
    models: Models,
    settings: Settings,
    now: datetime,
    indexes: IndexCache | None,
) -> list[Memory]:
    """At most `RELATED_LIMIT` memories near to a stored one, the nearest first, without those with the keys `known`; none where they aren't found in time."""
    question = Question(stored.content[:CHUNK_CHARACTERS], top_k=RELATED_LIMIT + SPARE, detail="index", is_statement=True)
    few = settings.fusion.model_copy(update={"candidates_per_source": RELATED_LIMIT + SPARE})
    settings = settings.model_copy(update={"fusion": few})
    asked = TimeAsked(question.query, question.query, "")
    try:
        with time_limit.limited(SECONDS), on_behalf_of(persona.name):
            found = pipeline.search(persona, question, asked, models=models, settings=settings, now=now, indexes=indexes)
            hits = pipeline.answer(question, found, models, settings, deadline=0.0).hits
    except (SearchUnfinished, StoreError, Overloaded) as error:
        logger.warning("what is related to %s of %s was not found: %s", stored.key, persona.name, error)
        return []
    embedder = models.of_generation(found.meaning.generation) if found.meaning.index else None
    least = ranking_of(embedder.name).same_task if embedder else 1.0
    return [
        hit.memory
        for hit in hits
        if hit.memory.key not in known
        and hit.memory.key != stored.key
        and (hit.why.get("lexical", 0.0) >= LEAST_WORDS or (hit.why.get("dense") or 0.0) >= least)
    ][:RELATED_LIMIT]
