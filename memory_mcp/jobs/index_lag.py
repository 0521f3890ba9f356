"""What of each persona waits for a vector: counted after each change, within a time limit."""

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass

from memory_mcp.encoders.models import Embedder
from memory_mcp.errors import MemoryMCPError
from memory_mcp.index import sync
from memory_mcp.jobs.index_schedule import Task
from memory_mcp.personas.registry import Persona, Personas

# The caller waits for the count. After a start with a thousand personas, the first call counts those beyond the limit as 1 each.
COUNTING_SECONDS = 1.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Waiting:
    """What of a persona waits for a vector: memories, in the generation that serves; and chunks, in another one that the worker has not
    begun to embed them for."""

    memories: int = 0
    chunks: int = 0


class LagCounter:
    """Counts the lag and caches the counts. Thread-safe."""

    def __init__(self, personas: Personas) -> None:
        self._personas = personas
        # With each count the state of the task that it was made in: another state may have another count.
        self._counts: dict[str, tuple[tuple[object, ...], Waiting]] = {}

    def waiting(
        self, tasks: Mapping[str, Task], embedder: Embedder, loaded: tuple[str, ...], seconds: float = COUNTING_SECONDS
    ) -> dict[str, Waiting]:
        """What waits, by the name of each persona with something to index.

        Of a persona that can't be opened, or not in time, one memory waits.
        """
        until = time.monotonic() + seconds
        counts = {name: self._count(name, task, embedder, loaded, until) for name, task in tasks.items() if task.to_index(loaded)}
        for name in [cached for cached in list(self._counts) if cached not in counts]:
            self._counts.pop(name, None)
        return counts

    def _count(self, name: str, task: Task, embedder: Embedder, loaded: tuple[str, ...], until: float) -> Waiting:
        state = (loaded, task.prepared_for, task.writes, task.indexed_writes, task.batches)
        known_in, known = self._counts.get(name, (None, Waiting(memories=1)))
        if known_in == state or time.monotonic() > until:
            return known
        try:
            with self._personas.reading(name) as persona:
                counted = _counted(persona, task, embedder, loaded) if persona.exists else Waiting()
        except MemoryMCPError as error:
            logger.debug("the waiting memories of %s can't be counted: %s", name, error)
            return known
        self._counts[name] = state, counted
        return counted


def _counted(persona: Persona, task: Task, embedder: Embedder, loaded: tuple[str, ...]) -> Waiting:
    serving = sync.generation_to_serve(persona, embedder, loaded)
    begun = serving == embedder.generation or task.prepared_for == loaded
    return Waiting(sync.waiting(persona, serving), 0 if begun else sync.chunks_lacking(persona, embedder.generation))
