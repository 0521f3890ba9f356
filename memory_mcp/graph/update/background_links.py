"""Background links between similar memories, and between memories whose stated relations contradict each other.

Both are hints: nothing is merged, replaced or left out because of them.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime

import apsw

from memory_mcp.encoders.model_families import ranking_of_generation
from memory_mcp.personas.registry import Persona
from memory_mcp.store import memories
from memory_mcp.store.graph import background_tasks, memory_links
from memory_mcp.store.graph.memory_links import Link
from memory_mcp.store.vectors import chunks, index_queue, stored_vectors
from memory_mcp.store.vectors.index_cache import IndexCache

# Memories linked at once, chunks of each that are compared, and links of each at most.
BATCH_MEMORIES, PIECES, LINKS_EACH = 20, 3, 5
# Nearest chunks requested; some belong to one memory, or to a summary.
NEAREST = 24
# Memories against which the relations of one stand.
COMPARED = 40
CONTRADICTION_CONFIDENCE = 0.5


def link_similar(persona: Persona, indexes: IndexCache, least: float | None, now: datetime) -> bool:
    """Links a few memories to those with the nearest vectors, with a cosine of at least `least`, or what suits the model. Returns whether
    there may be more.

    Does nothing while the index lacks vectors, or without a model.
    """
    with persona.database.read() as connection:
        generation = stored_vectors.serving_generation(connection)
        if generation is None or index_queue.length(connection):
            return False
        wanted = background_tasks.first(connection, "links", BATCH_MEMORIES)
        pieces, vectors = stored_vectors.of_memories(connection, generation, wanted)
        owners = chunks.owners(connection, pieces.tolist())
    index = indexes.get(persona.database, generation) if wanted else None
    if index is None:
        return False
    alike = ranking_of_generation(generation).alike if least is None else least
    own: dict[int, list[int]] = defaultdict(list)
    for index_of_vector, piece in enumerate(pieces.tolist()):
        own[owners.get(piece, 0)].append(index_of_vector)
    near = {
        memory: dict(pair for vector in own.get(memory, [])[:PIECES] for pair in index.search(vectors[vector], NEAREST))
        for memory in wanted
    }

    def write(connection: apsw.Connection) -> None:
        similar = [link for memory in wanted for link in _nearest(connection, memory, near[memory], alike)]
        memory_links.replace(connection, wanted, "vectors", similar, now)
        background_tasks.done(connection, "links", wanted)

    persona.database.write(write)
    return True


def link_contradicting(connection: apsw.Connection, memory_ids: Sequence[int], now: datetime) -> None:
    """Links these memories to those that may contradict them by the relations that they state."""
    current = memories.by_ids(connection, memory_ids).values()
    contradictions = [
        _contradiction(memory.id, other)
        for memory in current
        if not (memory.deleted_at or memory.superseded_by or memory.kind == "summary")
        for other in sorted(memory_links.contradicting_memories(connection, memory.id, COMPARED))[:LINKS_EACH]
    ]
    memory_links.replace(connection, memory_ids, "contradiction", contradictions, now)


def _contradiction(memory: int, other: int) -> Link:
    return Link(min(memory, other), max(memory, other), "contradiction", 0.5, CONTRADICTION_CONFIDENCE, "contradiction")


def _nearest(connection: apsw.Connection, memory: int, cosines: dict[int, float], least: float) -> Iterable[Link]:
    owners = chunks.owners(connection, list(cosines))
    best: dict[int, float] = {}
    for piece, owner in owners.items():
        if owner != memory and cosines[piece] >= least:
            best[owner] = max(best.get(owner, 0.0), cosines[piece])
    by_id = memories.by_ids(connection, best)
    nearest = sorted((other for other in best if by_id[other].kind != "summary"), key=lambda other: (-best[other], other))[:LINKS_EACH]
    return [
        Link(min(memory, other), max(memory, other), "semantic_similarity", round(min(best[other], 1.0), 4), 0.8, "vectors")
        for other in nearest
    ]
