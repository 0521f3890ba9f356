"""The chore that merges segments of the full-text index: each write adds one, and a search looks up tokens in all of them."""

from memory_mcp.personas.registry import Persona
from memory_mcp.store.lexical import bm25_index

CHORE = "segments"


def step(persona: Persona) -> bool:
    """Merge a few pages of segments, if that is worthwhile. Returns whether it did, so that there may be more.

    A read-only store is left as it is; its searches are slightly slower.
    """
    if persona.database.unwritable:
        return False
    with persona.database.read() as connection:
        fragmented = bm25_index.is_fragmented(connection)
    return fragmented and persona.database.write(bm25_index.merge_segments)
