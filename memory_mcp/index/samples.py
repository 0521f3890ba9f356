"""A sample of memories of all personas, on which it is measured how a model ranks. It leaves this machine's memory nowhere."""

from itertools import islice

from memory_mcp.errors import MemoryMCPError
from memory_mcp.personas.registry import Personas
from memory_mcp.store.inspection import newest_contents as contents_of

PERSONAS = 20
CONTENTS = 500


def newest_contents(personas: Personas) -> list[str]:
    """The newest memories of a few personas in equal parts, each text once. A persona that can't be read is left out."""
    names = list(islice(personas.names(), PERSONAS))
    contents: dict[str, None] = {}
    for name in names:
        try:
            with personas.reading(name) as persona, persona.database.read() as connection:
                newest = contents_of(connection, CONTENTS // len(names))
        except MemoryMCPError:
            continue
        contents.update((text, None) for text in newest if text.strip())
    return list(contents)
