"""The index of words in few segments: each write leaves one more, and a word is looked up in all of them."""

from datetime import timedelta

from memory_mcp.personas.registry import Persona
from memory_mcp.store.lexical import bm25_index

CHORE = "segments"
INTERVAL = timedelta(minutes=5)


def step(persona: Persona) -> bool:
    """Merges a few pages of segments of like size, where there are many. Returns whether it did, so that there may be more.

    What can't be written to is left as it is: it is searched a little more slowly.
    """
    if persona.database.unwritable:
        return False
    with persona.database.read() as connection:
        scattered = bm25_index.is_fragmented(connection)
    return scattered and persona.database.write(bm25_index.merge_similar_segments)
