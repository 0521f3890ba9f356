"""Which current memories are near to one that was just stored: whoever wrote it may know that one of them no longer holds.

They have the rarest of its words, or a vector near to its own: that of the text as the index embeds it, so that the index finds it in the
cache.
"""

import logging
from collections.abc import Collection, Mapping
from concurrent.futures import Future
from datetime import datetime
from threading import Thread
from zoneinfo import ZoneInfo

import apsw

from memory_mcp import time_limit
from memory_mcp.domain import Filters, Memory
from memory_mcp.encoders.model_families import ranking_of
from memory_mcp.encoders.models import Embedder, Models, Vectors
from memory_mcp.encoders.worker_pool import on_behalf_of
from memory_mcp.errors import EncoderFailed, Overloaded, SearchUnfinished, StoreError
from memory_mcp.language.analysis import analysis
from memory_mcp.personas.registry import Persona
from memory_mcp.search.meaning import Meaning, from_meaning, similarities
from memory_mcp.store import memories
from memory_mcp.store.lexical import bm25_index
from memory_mcp.store.vectors import stored_vectors
from memory_mcp.store.vectors.index_cache import IndexCache

RELATED_LIMIT = 3
# So many are found by words, and by meaning: the memory itself, and others that say nearly the same, are among them.
FOUND = 7
# Of a long text so many characters are searched, and so many of its rarest tokens.
LONGEST, TOKENS = 500, 12
# The share that a related memory has of what the words of the text count by BM25, all of which the text itself has.
LEAST_WORDS = 0.25
# So long may an answer wait for the vector, and for the search.
EMBEDDING_SECONDS, SEARCH_SECONDS = 0.3, 0.5

logger = logging.getLogger(__name__)


def related(
    persona: Persona, key: str, known: Collection[str], *, models: Models, zone: ZoneInfo, now: datetime, indexes: IndexCache | None
) -> list[Memory]:
    """At most `RELATED_LIMIT` memories near to the stored one with this key, the nearest first, without those of the keys `known`; none
    where they can't be found in time."""
    try:
        with time_limit.limited(SEARCH_SECONDS), on_behalf_of(persona.name):
            meaning = _meaning_of(persona, key, models, zone, indexes) if models.loaded and indexes else None
            time_limit.check()
            with persona.database.read_briefly() as connection:
                return _near(connection, persona, key, known, meaning, now)
    except (SearchUnfinished, StoreError, Overloaded) as error:
        logger.warning("what is related to %s of %s was not found: %s", key, persona.name, error)
        return []


def _near(
    connection: apsw.Connection, persona: Persona, key: str, known: Collection[str], meaning: tuple[Meaning, float] | None, now: datetime
) -> list[Memory]:
    stored = memories.by_keys(connection, [key]).get(key)
    if stored is None:
        return []
    filters = Filters(unexpired_at=now) if persona.has_expired else Filters()
    words = dict(bm25_index.near_text(connection, analysis(stored.content[:LONGEST]).query_tokens, TOKENS, filters, FOUND))
    own = words.pop(stored.id, None) or max(words.values(), default=1.0)
    scores = {memory_id: bm25 / own for memory_id, bm25 in words.items() if bm25 >= LEAST_WORDS * own}
    if meaning:
        found = {*words, *from_meaning(connection, meaning[0], filters, FOUND)} - {stored.id}
        scores = _with_meaning(connection, *meaning, {memory_id: words.get(memory_id, 0.0) / own for memory_id in found})
    nearest = sorted(scores, key=lambda memory_id: (-scores[memory_id], -memory_id))[:FOUND]
    by_id = memories.by_ids(connection, nearest)
    distinct = {by_id[memory_id].content: by_id[memory_id] for memory_id in reversed(nearest) if memory_id in by_id}
    return [memory for memory in reversed(distinct.values()) if memory.key not in known and memory.content != stored.content][
        :RELATED_LIMIT
    ]


def _with_meaning(connection: apsw.Connection, meaning: Meaning, alike: float, shares: Mapping[int, float]) -> dict[int, float]:
    """The scores of those of these memories, given with their shares of the words, that are near by words, or by a cosine of at least
    `alike`."""
    near = similarities(connection, meaning, list(shares))
    best = max((each.nearness for each in near.values()), default=1.0)
    scores: dict[int, float] = {}
    for memory_id, share in shares.items():
        similar = near.get(memory_id)
        if share >= LEAST_WORDS or (similar and similar.cosine >= alike):
            by_meaning = similar.nearness / best if similar and best > 0 else share
            scores[memory_id] = (1 - meaning.weight) * share + meaning.weight * by_meaning
    return scores


def _meaning_of(persona: Persona, key: str, models: Models, zone: ZoneInfo, indexes: IndexCache) -> tuple[Meaning, float] | None:
    """The vector of the memory with this key with the index, and the cosine from which others are near; None where one of them is not there
    in time."""
    with persona.database.read_briefly() as connection:
        stored = memories.by_keys(connection, [key]).get(key)
        embedder = models.of_generation(stored_vectors.serving_generation(connection))
        if not (stored and embedder):
            return None
        chunks = stored_vectors.unembedded(connection, embedder.generation, 1, zone, of=[stored.id])
    index = indexes.get(persona.database, embedder.generation) if chunks else None
    if not (index and index.count and embedder.covers(chunks[0].text)):
        return None
    vector = _embedded(embedder, chunks[0].text)
    if vector is None:
        return None
    ranking = ranking_of(embedder.name)
    return Meaning((vector,), index, None, embedder.generation, ranking.weight, embedder.centers, is_statement=True), ranking.alike


def _embedded(embedder: Embedder, text: str) -> Vectors | None:
    """The vector of a text, which the cache has from then on. The wait ends before the model does, if that takes long."""
    done: Future[Vectors | None] = Future()

    def embed() -> None:
        try:
            done.set_result(embedder.embed_documents([text], is_awaited=True)[0])
        except EncoderFailed:
            done.set_result(None)

    Thread(target=embed, name="related", daemon=True).start()
    try:
        return done.result(EMBEDDING_SECONDS)
    except TimeoutError:
        return None
