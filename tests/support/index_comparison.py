"""What the vector index and the database of a persona disagree on."""

from dataclasses import dataclass

import numpy as np

from memory_mcp.personas.registry import Persona
from memory_mcp.store.vectors import stored_vectors
from memory_mcp.store.vectors.index_cache import IndexCache


@dataclass(frozen=True, slots=True)
class Differences:
    """Chunks missing from the index, chunks that only the index has, and chunks with another vector there. All empty: they are equal."""

    missing: tuple[int, ...] = ()
    surplus: tuple[int, ...] = ()
    unequal: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.missing or self.surplus or self.unequal)


def compare(persona: Persona, generation: str, indexes: IndexCache) -> Differences:
    """Compares every id and every vector of the index with the database."""
    index = indexes.get(persona.database, generation)
    if index is None:
        return Differences()
    held = index.ids()
    unequal: list[int] = []
    with persona.database.read() as connection:
        wanted = stored_vectors.ids(connection, generation)
        for page, vectors in stored_vectors.pages(connection, generation):
            known, own = index.reconstruct(page.tolist())
            stored = vectors[np.isin(page, known)]
            unequal += [chunk for chunk, same in zip(known, np.abs(own - stored).max(axis=1, initial=0) < 1e-5, strict=True) if not same]
    return Differences(tuple(np.setdiff1d(wanted, held).tolist()), tuple(np.setdiff1d(held, wanted).tolist()), tuple(unequal))


def lag(persona: Persona, generation: str) -> int:
    """How many memories have no vector in a generation."""
    with persona.database.read() as connection:
        return stored_vectors.lag(connection, generation)
