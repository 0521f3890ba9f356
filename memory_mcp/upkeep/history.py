"""The history of a memory: its earlier states and the operations on it."""

from dataclasses import dataclass

from memory_mcp.domain import Memory
from memory_mcp.errors import MemoryNotFound
from memory_mcp.personas.registry import Persona
from memory_mcp.store import memories, operations, tombstones, versions
from memory_mcp.store.operations import Done
from memory_mcp.store.versions import Version


@dataclass(frozen=True, slots=True)
class History:
    """A memory, its earlier states (latest first), and the operations on it in order."""

    memory: Memory
    versions: tuple[Version, ...]
    done: tuple[Done, ...]


def of(persona: Persona, key: str) -> History:
    """The history of the memory of this key, in the trash or not.

    Raises:
        MemoryNotFound: there is none, or it was purged.
    """
    with persona.database.read() as connection:
        memory = memories.by_keys(connection, [key]).get(key)
        if memory is None:
            erased = tombstones.erased_at(connection, key)
            why = f"it was erased for good at {erased:%Y-%m-%d %H:%M} UTC" if erased else ""
            raise MemoryNotFound("no memory has the key {}", "{}", "" if erased else "Take the key from a recall", key[:200], why)
        return History(memory, tuple(versions.of_key(connection, key)), tuple(operations.of_key(connection, key)))
