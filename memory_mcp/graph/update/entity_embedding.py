"""Background step: embeds entities by their names and by the memories that name them."""

import apsw
import numpy as np

from memory_mcp.encoders.models import Models
from memory_mcp.errors import EncoderFailed
from memory_mcp.personas.registry import Persona
from memory_mcp.store.graph.entities import entity_vectors
from memory_mcp.store.vectors import index_queue, stored_vectors

# Finding outdated vectors reads every mention, so many are made at once.
BATCH = 512


def embed_entities(persona: Persona, models: Models) -> bool:
    """Embeds a batch of entities with missing or outdated vectors, in the serving generation. Returns whether there may be more.

    Nothing is done without an available model, and while memories wait for their vectors: an entity's vector is made of theirs.

    Raises:
        EncoderFailed: the model failed; nothing was changed.
    """
    with persona.database.read() as connection:
        generation = stored_vectors.serving_generation(connection)
        embedder = models.of_generation(generation)
        if embedder is None or generation is None or index_queue.length(connection):
            return False
        wanting = entity_vectors.outdated(connection, generation, BATCH)
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
    return len(wanting) == BATCH
