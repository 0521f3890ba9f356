"""Entities by meaning: those that a text may mean without their name, such as 「あの歯医者」."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from memory_mcp.encoders.models import Embedder, Models, Replacement, Vectors
from memory_mcp.errors import EncoderFailed
from memory_mcp.personas.registry import Persona
from memory_mcp.store.graph.entities import entity_vectors, lookup, records
from memory_mcp.store.graph.entities.records import Entity
from memory_mcp.store.vectors import stored_vectors

# Models differ in the cosine of two unrelated texts. So nearness is scaled: 0 for an unrelated text, 1 for the same text. The nearest
# entity needs `FLOOR`, others this share of the nearest one's.
FLOOR, SHARE_OF_BEST = 0.15, 0.8
# The same in a recall, where the entities of the best hits are known, too: below this, those lead further
# (docs/decisions/0044-the-graph-beside-vectors.md).
QUESTION_FLOOR = 0.35
ENTITIES_LIMIT = 3
# Unrelated texts: the entities of a small persona do not show how far unrelated ones are.
UNRELATED = ("天気", "音楽", "数学", "朝ごはん", "政治", "a river", "the weather", "a number", "an old song", "paint")


@dataclass(frozen=True, slots=True)
class EntitiesByMeaning:
    """The entities that a text may mean, the nearest first, each with its cosine. `skipped`: why none was looked for. `shares`: the
    nearness of each as a share of the nearest one's. `replaced` says that the model that looked for them is not the configured one.
    """

    entities: tuple[tuple[Entity, float], ...] = ()
    skipped: str | None = None
    shares: Mapping[int, float] = field(default_factory=dict)
    replaced: Replacement | None = None


def entities_by_meaning(persona: Persona, text: str, models: Models, floor: float = FLOOR) -> EntitiesByMeaning:
    """The entities nearest to a text by meaning; none where none reaches the floor. No database connection is held while the model
    works.
    """
    with persona.database.read() as connection:
        serving = stored_vectors.serving_generation(connection)
        embedder = models.of_generation(serving)
        ids, vectors = entity_vectors.everything(connection, serving) if serving and embedder else (np.empty(0, np.int64), None)
    if embedder is None:
        return EntitiesByMeaning(skipped=models.why_none(serving))
    if not embedder.covers(text):
        return EntitiesByMeaning(skipped="embedder_language")
    if vectors is None or not len(ids):
        return EntitiesByMeaning(skipped="nothing_embedded_yet")
    try:
        cosines, unrelated = _cosines(embedder, text, vectors)
    except EncoderFailed:
        return EntitiesByMeaning(skipped="embedder_failed")
    nearness = (cosines - unrelated) / max(1 - unrelated, 1e-6)
    best = float(nearness.max())
    if best < floor:
        return EntitiesByMeaning()
    order = [index for index in np.argsort(-nearness)[:ENTITIES_LIMIT].tolist() if nearness[index] >= max(floor, SHARE_OF_BEST * best)]
    with persona.database.read() as connection:
        nearest = records.by_ids(connection, [int(ids[index]) for index in order])
        known = {entity.id: entity for entity in lookup.visible(connection, list(nearest.values()))}
    shown = [(known[int(ids[index])], index) for index in order if int(ids[index]) in known]
    return EntitiesByMeaning(
        tuple((entity, round(float(cosines[index]), 3)) for entity, index in shown),
        shares={entity.merged_into or entity.id: float(nearness[index]) / best for entity, index in shown},
        replaced=models.replaced(embedder),
    )


def _cosines(embedder: Embedder, text: str, vectors: Vectors) -> tuple[Vectors, float]:
    """The cosine of each vector with the text, and the mean cosine of all entities and unrelated texts."""
    query = embedder.embed_query(text)
    cosines = vectors @ query
    unrelated = embedder.embed_documents(UNRELATED, is_awaited=True) @ query
    return cosines, float(np.concatenate([cosines, unrelated]).mean())
