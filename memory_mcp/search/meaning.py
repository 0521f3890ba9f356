"""The query as vectors, and the memories whose vectors are near: the source of candidates that needs a model."""

from dataclasses import dataclass

import apsw
import numpy as np

from memory_mcp.domain import Filters, Question
from memory_mcp.encoders.models import Models, Vectors
from memory_mcp.errors import EncoderFailed
from memory_mcp.personas.registry import Persona
from memory_mcp.store.vectors import chunks, stored_vectors
from memory_mcp.store.vectors.faiss_index import VectorIndex
from memory_mcp.store.vectors.index_cache import IndexShelf

# A memory may have several vectors: so many more chunks than memories are asked for.
CHUNKS_PER_CANDIDATE = 3
# A question is nearer to questions than any statement is. So much of what a memory's own questions have over its content counts:
# all of it would put memories that were stored with questions before the others (docs/decisions/0016-questions-and-guesses.md).
QUESTION_WEIGHT = 0.5


@dataclass(frozen=True, slots=True)
class Meaning:
    """What was asked, as vectors of the generation that answers for this persona, and its index.

    Without an index `skipped` says why, unless no model is wanted. `generation` is what vectors are, or will be, of.
    """

    vectors: tuple[Vectors, ...] = ()
    index: VectorIndex | None = None
    skipped: str | None = None
    generation: str | None = None


def meaning_of(persona: Persona, question: Question, models: Models, indexes: IndexShelf | None) -> Meaning:
    """Asks the model for the vectors of the query and of the guessed answer. Holds no database meanwhile."""
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
    found: dict[int, None] = {}
    for start in range(0, len(nearest), limit):  # nearly always the first ones are of as many memories
        chunk_ids = [chunk for chunk, _ in nearest[start : start + limit]]
        owners = chunks.owners(connection, chunk_ids)
        found.update((owners[chunk], None) for chunk in chunk_ids if chunk in owners)
        if len(found) >= limit:
            break
    return list(found)[:limit]


def cosines(connection: apsw.Connection, meaning: Meaning, memory_ids: list[int]) -> dict[int, tuple[float, int]]:
    """For each of these memories how near it is, and which piece of its content is the nearest. One whose content has no vector is left out.

    Near is the mean cosine with the vectors of the query and of the guess, raised by `QUESTION_WEIGHT` of what the memory's own
    questions have more.
    """
    if meaning.index is None:
        return {}
    owners = chunks.pieces_and_questions(connection, memory_ids)
    known, vectors = meaning.index.reconstruct(owners)
    if not known:
        return {}
    said: dict[int, tuple[float, int]] = {}
    asked: dict[int, float] = {}
    for chunk, cosine in zip(known, (vectors @ np.mean(meaning.vectors, axis=0)).tolist(), strict=True):
        memory_id, is_question = owners[chunk]
        if is_question:
            asked[memory_id] = max(cosine, asked.get(memory_id, cosine))
        else:
            said[memory_id] = max((cosine, chunk), said.get(memory_id, (cosine, chunk)))
    return {
        memory_id: (cosine + QUESTION_WEIGHT * max(asked.get(memory_id, cosine) - cosine, 0.0), chunk)
        for memory_id, (cosine, chunk) in said.items()
    }
