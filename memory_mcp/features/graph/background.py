"""What is added to the graph in the background: vectors of entities, links between similar memories, what a chat model finds.

Names and relations that texts state are in it with the memory (`graph/update/`).
"""

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

import apsw
import numpy as np

from memory_mcp.config.settings import Settings
from memory_mcp.encoders.model_families import scale_of
from memory_mcp.encoders.models import Embedder, Models
from memory_mcp.errors import EncoderFailed
from memory_mcp.features.graph import llm_extraction
from memory_mcp.features.graph.settings import Graph
from memory_mcp.jobs.chore_worker import Chore
from memory_mcp.jobs.chores import ChoreParts
from memory_mcp.llm.chat import ChatModel
from memory_mcp.personas.registry import Persona
from memory_mcp.relate import links as newer_links
from memory_mcp.store import memories
from memory_mcp.store.graph import background_tasks, consistency, memory_links, mentions, relations
from memory_mcp.store.graph.entities import entity_vectors
from memory_mcp.store.graph.memory_links import Link
from memory_mcp.store.vectors import chunks, index_queue, stored_vectors
from memory_mcp.store.vectors.faiss_index import VectorIndex
from memory_mcp.store.vectors.index_cache import IndexCache
from memory_mcp.store.vectors.nearness import cosines_apart
from memory_mcp.store.vectors.stored_vectors import Matrix
from memory_mcp.upkeep.retention_rules import trash_expired

# Links and extraction do little for each memory, so they need not run after every write.
LINKS_INTERVAL = timedelta(minutes=5)
CHECK_INTERVAL = timedelta(days=1)
CHECKED_AT_ONCE = 100
# Finding outdated vectors reads every mention, so many are made at once.
EMBEDDED_AT_ONCE = 512
# Memories linked at once, chunks of each that are compared, and links of each at most.
BATCH_MEMORIES, PIECES, LINKS_EACH = 20, 3, 5
# Nearest chunks requested; some belong to one memory, or to a summary.
NEAREST = 24

logger = logging.getLogger(__name__)


def chores(parts: ChoreParts) -> list[Chore]:
    """What is done for each persona."""
    models_for, indexes, chat = parts.models_for, parts.indexes, parts.chat
    return [
        Chore("entity vectors", lambda persona, _now, settings: embed_entities(persona, models_for(settings)), only_after_writes=True),
        Chore(
            "links",
            lambda persona, now, settings: link_similar(persona, models_for(settings), indexes, settings.of(Graph).alike_from, now),
            lambda settings: settings.of(Graph).link_alike,
            lambda _: LINKS_INTERVAL,
            only_after_writes=True,
        ),
        _asking_model("graph model", llm_extraction.step, chat, lambda graph: graph.ask_model),
        _asking_model("newer", newer_links.step, chat, lambda graph: graph.judge_newer),
        Chore("graph check", lambda persona, now, _: check_sums(persona, now), interval=lambda _: CHECK_INTERVAL, only_after_writes=True),
    ]


def _asking_model(
    name: str, step: Callable[[Persona, datetime, Settings, ChatModel], bool], chat: ChatModel, is_on: Callable[[Graph], bool]
) -> Chore:
    """A chore that asks the chat model, where there is one. What has expired is moved first, so that no model is asked about it."""
    return Chore(
        name,
        lambda persona, now, settings: trash_expired(persona, now) or step(persona, now, settings, chat),
        lambda settings: is_on(settings.of(Graph)) and settings.llm.chat_class is not None,
        lambda _: LINKS_INTERVAL,
        only_after_writes=True,
    )


def embed_entities(persona: Persona, models: Models) -> bool:
    """Embeds a batch of entities with missing or outdated vectors, by their names and by the memories that name them, in the serving generation.
    Returns whether there may be more.

    Nothing is done without an available model, and while memories wait for their vectors: an entity's vector is made of theirs.

    Raises:
        EncoderFailed: the model failed; nothing was changed.
    """
    with persona.database.read() as connection:
        generation = stored_vectors.serving_generation(connection)
        embedder = models.of_generation(generation)
        if embedder is None or generation is None or index_queue.length(connection):
            return False
        wanting = entity_vectors.outdated(connection, generation, EMBEDDED_AT_ONCE)
        pieces = [entity_vectors.of_memories(connection, generation, entity.entity) for entity in wanting]
        # While the configured model is away, its vectors wait for it.
        is_configured = models.embedder is not None and models.embedder.generation == generation
        keep = [generation] if is_configured else sorted(stored_vectors.generations(connection))
        useless = entity_vectors.useless(connection, keep)
    if not (wanting or useless):
        return False
    unknown = list(dict.fromkeys(entity.text for entity in wanting if entity.name_vector is None))
    made = embedder.embed_documents(unknown)
    if made.shape != (len(unknown), embedder.dimension) or not np.isfinite(made).all():
        raise EncoderFailed("{} answered with unusable vectors", "the shape is {}", "", embedder.name, made.shape)
    names = dict(zip(unknown, made, strict=True))
    rows = [
        (entity, name, entity_vectors.mixed(name, near))
        for entity, near in zip(wanting, pieces, strict=True)
        for name in [names[entity.text] if entity.name_vector is None else entity.name_vector]
    ]

    def store(connection: apsw.Connection) -> None:
        entity_vectors.drop_useless(connection, keep)
        entity_vectors.write(connection, generation, rows)

    persona.database.write(store)
    return len(wanting) == EMBEDDED_AT_ONCE


def link_similar(persona: Persona, models: Models, indexes: IndexCache, least: float | None, now: datetime) -> bool:
    """Links a few memories to those with the nearest vectors, with a cosine of at least `least`, or what suits the model. Returns whether
    there may be more.

    Does nothing while the index lacks vectors, or without a model.
    """
    with persona.database.read() as connection:
        generation = stored_vectors.serving_generation(connection)
        embedder = models.of_generation(generation)
        if embedder is None or generation is None or index_queue.length(connection):
            return False
        wanted = background_tasks.first(connection, "links", BATCH_MEMORIES)
        pieces, vectors = stored_vectors.of_memories(connection, generation, wanted)
        owners = chunks.owners(connection, pieces.tolist())
    index = indexes.get(persona.database, generation) if wanted else None
    if index is None:
        return False
    alike = _least(embedder, index, vectors) if least is None else np.full(len(vectors), least)
    own: dict[int, list[int]] = defaultdict(list)
    for index_of_vector, piece in enumerate(pieces.tolist()):
        own[owners.get(piece, 0)].append(index_of_vector)
    near = {
        memory: {
            piece: cosine
            for row in own.get(memory, [])[:PIECES]
            for piece, cosine in index.search(vectors[row], NEAREST)
            if cosine >= alike[row]
        }
        for memory in wanted
    }

    def write(connection: apsw.Connection) -> None:
        similar = [link for memory in wanted for link in _nearest(connection, memory, near[memory])]
        memory_links.replace(connection, wanted, "vectors", similar, now)
        background_tasks.done(connection, "links", wanted)

    persona.database.write(write)
    return True


def _least(embedder: Embedder, index: VectorIndex, vectors: Matrix) -> Matrix:
    """The least cosine of each vector with one that is alike, of shape (vectors,)."""
    centers, alike = embedder.centers, scale_of(embedder.centers).alike
    if centers is None:
        return np.full(len(vectors), alike, np.float32)
    return cosines_apart(alike, vectors, index.means_near(centers.statements), centers.known)


def _nearest(connection: apsw.Connection, memory: int, cosines: dict[int, float]) -> Iterable[Link]:
    owners = chunks.owners(connection, list(cosines))
    best: dict[int, float] = {}
    for piece, owner in owners.items():
        if owner != memory:
            best[owner] = max(best.get(owner, 0.0), cosines[piece])
    by_id = memories.by_ids(connection, best)
    nearest = sorted((other for other in best if by_id[other].kind != "summary"), key=lambda other: (-best[other], other))[:LINKS_EACH]
    return [
        Link(min(memory, other), max(memory, other), "semantic_similarity", round(min(best[other], 1.0), 4), 0.8, "vectors")
        for other in nearest
    ]


def check_sums(persona: Persona, now: datetime) -> bool:
    """Checks of the next few entities that the weight of each relation agrees with its evidence, and each count with the memories. Errors are
    corrected and logged; stated relations and memories are never changed. Returns whether there are more entities.
    """
    with persona.database.read() as connection:
        until = consistency.checked_until(connection)
        entities = consistency.after(connection, until, CHECKED_AT_ONCE)
        pairs, counts = consistency.wrong_sums(connection, entities), consistency.wrong_counts(connection, entities)
    if pairs or counts:
        logger.warning("the graph of %s was inconsistent: %d relations and %d counts are corrected", persona.name, len(pairs), len(counts))
    more = len(entities) == CHECKED_AT_ONCE

    def write(connection: apsw.Connection) -> None:
        relations.sum_up(connection, pairs, now)
        mentions.recount(connection, counts)
        consistency.note_checked(connection, entities[-1] if more else 0)

    if pairs or counts or more or until:
        persona.database.write(write)
    return more
