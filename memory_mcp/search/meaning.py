"""The query as vectors, and the memories with near vectors: the candidates that need a model."""

from dataclasses import dataclass

import apsw
import numpy as np

from memory_mcp.domain import Filters, Question
from memory_mcp.encoders.models import Models, Vectors
from memory_mcp.errors import EncoderFailed
from memory_mcp.personas.registry import Persona
from memory_mcp.store.vectors import chunks, stored_vectors
from memory_mcp.store.vectors.faiss_index import VectorIndex
from memory_mcp.store.vectors.index_cache import IndexCache

# A memory may have several vectors: the number of chunks requested for each candidate.
CHUNKS_PER_CANDIDATE = 3
# A question is nearer to questions than to any statement. This share of what a memory's own questions exceed its content by counts:
# all of it would rank memories that were stored with questions before the others (docs/decisions/0016-questions-and-guesses.md).
QUESTION_WEIGHT = 0.5


@dataclass(frozen=True, slots=True)
class Meaning:
    """The query as vectors of the generation that serves this persona, and its index.

    Without an index `skipped` is the reason, unless no model is wanted. `generation` is that of the vectors, present or future.
    """

    vectors: tuple[Vectors, ...] = ()
    index: VectorIndex | None = None
    skipped: str | None = None
    generation: str | None = None


def meaning_of(persona: Persona, question: Question, models: Models, indexes: IndexCache | None) -> Meaning:
    """Embeds the query and the guessed answer. No database connection is held meanwhile."""
    state = models.embedder_state.state
    unwanted = question.mode not in ("auto", "semantic", "graph") or (state == "off" and question.mode != "semantic")
    if unwanted or (models.embedder and not persona.exists):
        return Meaning()
    with persona.database.read_briefly() as connection:
        serving = stored_vectors.serving_generation(connection)
    embedder = models.of_generation(serving) or (models.embedder if serving is None else None)
    if embedder is None or indexes is None:
        return Meaning(skipped=f"embedder_{state}" if state != "loaded" else "reembedding")
    if not embedder.covers(question.query):
        return Meaning(skipped="embedder_language")
    index = indexes.get(persona.database, embedder.generation)
    if index is None or not index.count:
        return Meaning(skipped="nothing_embedded_yet", generation=embedder.generation)
    try:
        vectors = [embedder.embed_query(question.query)]
        if question.hypothetical:
            vectors.append(embedder.embed_documents([question.hypothetical])[0])
    except EncoderFailed:
        return Meaning(skipped="embedder_failed", generation=embedder.generation)
    return Meaning(tuple(vectors), index, generation=embedder.generation)


def from_meaning(connection: apsw.Connection, meaning: Meaning, filters: Filters, limit: int) -> list[int]:
    """The memories nearest to any of the vectors, the nearest first."""
    if meaning.index is None:
        return []
    among = chunks.passing_filters(connection, filters) if filters else None
    asked = limit * CHUNKS_PER_CANDIDATE
    nearest = sorted((hit for vector in meaning.vectors for hit in meaning.index.search(vector, asked, among)), key=lambda hit: -hit[1])
    memory_ids: dict[int, None] = {}
    for start in range(0, len(nearest), limit):  # nearly always the first ones are of as many memories
        chunk_ids = [chunk for chunk, _ in nearest[start : start + limit]]
        owners = chunks.owners(connection, chunk_ids)
        memory_ids.update((owners[chunk], None) for chunk in chunk_ids if chunk in owners)
        if len(memory_ids) >= limit:
            break
    return list(memory_ids)[:limit]


def cosines(connection: apsw.Connection, meaning: Meaning, memory_ids: list[int]) -> dict[int, tuple[float, int]]:
    """The cosine of each of these memories and its nearest chunk. A memory without vectors is left out.

    The cosine is the mean with the vectors of the query and of the guess, raised by `QUESTION_WEIGHT` of what the memory's own questions exceed it by.
    """
    if meaning.index is None:
        return {}
    owners = chunks.pieces_and_questions(connection, memory_ids)
    known, vectors = meaning.index.reconstruct(owners)
    if not known:
        return {}
    by_content: dict[int, tuple[float, int]] = {}
    by_question: dict[int, float] = {}
    for chunk, cosine in zip(known, (vectors @ np.mean(meaning.vectors, axis=0)).tolist(), strict=True):
        memory_id, is_question = owners[chunk]
        if is_question:
            by_question[memory_id] = max(cosine, by_question.get(memory_id, cosine))
        else:
            by_content[memory_id] = max((cosine, chunk), by_content.get(memory_id, (cosine, chunk)))
    return {
        memory_id: (cosine + QUESTION_WEIGHT * max(by_question.get(memory_id, cosine) - cosine, 0.0), chunk)
        for memory_id, (cosine, chunk) in by_content.items()
    }
