"""Entities by meaning: whom a question may mean that is called by none of its words, such as 「あの歯医者」."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from memory_mcp.encoders.models import Embedder, Models, Vectors
from memory_mcp.errors import EncoderFailed
from memory_mcp.personas.registry import Persona
from memory_mcp.store.graph.entities import entity_vectors, lookup, records
from memory_mcp.store.graph.entities.records import Entity
from memory_mcp.store.vectors import stored_vectors

# Models differ in what cosine two things have that have nothing to do with each other. So what counts is how much of the way from there
# to the same text an entity has come: of the best at least so much, of others nearly as much as of the best.
FLOOR, BESIDE_THE_BEST = 0.15, 0.8
MEANT_LIMIT = 3
# They stand for whatever else there is: a persona with three entities tells little about what is far.
ANYTHING = ("天気", "音楽", "数学", "朝ごはん", "政治", "a river", "the weather", "a number", "an old song", "paint")


@dataclass(frozen=True, slots=True)
class Meant:
    """The entities that a text may mean, the nearest first, and how near each is: a cosine. Without any, `skipped` may say that nobody looked."""

    entities: tuple[tuple[Entity, float], ...] = ()
    skipped: str | None = None
    shares: Mapping[int, float] = field(default_factory=dict)


def meant(persona: Persona, text: str, models: Models) -> Meant:
    """The entities nearest to a text by meaning; none where nothing is near enough. Holds no database while the model works."""
    with persona.database.read() as connection:
        serving = stored_vectors.serving_generation(connection)
        embedder = models.of_generation(serving)
        ids, vectors = entity_vectors.everything(connection, serving) if serving and embedder else (np.empty(0, np.int64), None)
    if embedder is None:
        state = models.embedder_state.state
        return Meant(skipped=f"embedder_{state}" if state != "loaded" else "nothing_embedded_yet" if serving is None else "reembedding")
    if not embedder.covers(text):
        return Meant(skipped="embedder_language")
    if vectors is None or not len(ids):
        return Meant(skipped="nothing_embedded_yet")
    try:
        cosines, far = _cosines(embedder, text, vectors)
    except EncoderFailed:
        return Meant(skipped="embedder_failed")
    nearness = (cosines - far) / max(1 - far, 1e-6)
    best = float(nearness.max())
    if best < FLOOR:
        return Meant()
    order = [place for place in np.argsort(-nearness)[:MEANT_LIMIT].tolist() if nearness[place] >= max(FLOOR, BESIDE_THE_BEST * best)]
    with persona.database.read() as connection:
        found = records.by_ids(connection, [int(ids[place]) for place in order])
        known = {entity.id: entity for entity in lookup.visible(connection, list(found.values()))}
    there = [(known[int(ids[place])], place) for place in order if int(ids[place]) in known]
    return Meant(
        tuple((entity, round(float(cosines[place]), 3)) for entity, place in there),
        shares={entity.merged_into or entity.id: float(nearness[place]) / best for entity, place in there},
    )


def _cosines(embedder: Embedder, text: str, vectors: Vectors) -> tuple[Vectors, float]:
    """How near each of the vectors is, and how near anything is on average."""
    asked = embedder.embed_query(text)
    cosines = vectors @ asked
    anything = embedder.embed_documents(ANYTHING) @ asked
    return cosines, float(np.concatenate([cosines, anything]).mean())
