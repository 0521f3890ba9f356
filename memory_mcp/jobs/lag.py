"""How many memories of each persona wait for a vector: counted where it is not known, once for each change, for a limited time."""

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass

from memory_mcp.encoders.protocols import Embedder
from memory_mcp.errors import MemoryMCPError
from memory_mcp.index import sync
from memory_mcp.jobs.index_schedule import Task
from memory_mcp.personas.registry import Personas

# Whoever asks waits for it. After a start with a thousand personas the first to ask gets the rest as one each, and the next one exactly.
COUNTING_SECONDS = 1.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Counted:
    """A count, and the state of the task that it is of: another one may have another count."""

    state: tuple[object, ...]
    count: int


class Lag:
    """What was counted lately. Any number of threads may ask."""

    def __init__(self, personas: Personas, counting_seconds: float = COUNTING_SECONDS) -> None:
        self._personas = personas
        self._counting_seconds = counting_seconds
        self._counted: dict[str, _Counted] = {}

    def waiting(self, tasks: Mapping[str, Task], embedder: Embedder, loaded: tuple[str, ...]) -> dict[str, int]:
        """For each persona with something to index how many memories lack a vector, without those that lack none.

        One that can't be opened, or not in time, counts as 1: something of it waits.
        """
        until = time.monotonic() + self._counting_seconds
        found = {name: self._of(name, task, embedder, loaded, until) for name, task in tasks.items() if task.to_index(loaded)}
        for name in [known for known in list(self._counted) if known not in found]:
            self._counted.pop(name, None)
        return {name: count for name, count in found.items() if count}

    def _of(self, name: str, task: Task, embedder: Embedder, loaded: tuple[str, ...], until: float) -> int:
        state = (loaded, task.settled_for, task.woken, task.looked, task.batches)
        known = self._counted.get(name)
        if known and known.state == state:
            return known.count
        if time.monotonic() > until:
            return known.count if known else 1
        try:
            with self._personas.reading(name) as persona:
                count = sync.waiting(persona, embedder, loaded) if persona.exists else 0
        except MemoryMCPError as error:
            logger.debug("what waits of %s can't be counted: %s", name, error)
            return known.count if known else 1
        self._counted[name] = _Counted(state, count)
        return count
