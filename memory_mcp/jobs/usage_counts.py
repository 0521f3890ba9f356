"""Counts how often recall shows each memory: in memory during calls, and written to the database by a chore.

No call waits for it. A killed process loses the counts of the last minutes, which only affect the order of suggestions.
"""

import logging
import threading
from collections.abc import Iterable
from datetime import datetime, timedelta

from memory_mcp.config.settings import Settings
from memory_mcp.errors import MemoryMCPError
from memory_mcp.jobs.chore_worker import Chore
from memory_mcp.personas.registry import Persona, Personas
from memory_mcp.store import memory_usage

# Keys of one persona between two writes; further ones are not counted.
KEYS_LIMIT = 10_000

logger = logging.getLogger(__name__)

_Uses = dict[str, tuple[int, datetime]]


class Usage:
    """Counts by persona and key. Thread-safe."""

    def __init__(self) -> None:
        self._counts: dict[str, _Uses] = {}
        self._guard = threading.Lock()

    def note(self, persona_name: str, keys: Iterable[str], now: datetime) -> None:
        """Counts these memories as shown by a recall."""
        with self._guard:
            counts = self._counts.setdefault(persona_name, {})
            for key in keys:
                if key in counts or len(counts) < KEYS_LIMIT:
                    counts[key] = counts.get(key, (0, now))[0] + 1, now

    def step(self, persona: Persona, _now: datetime, _settings: Settings) -> bool:
        """Writes the counts of a persona. One call is always enough."""
        self._write(persona)
        return False

    def write_all(self, personas: Personas) -> None:
        """Writes the counts of all personas, before the server stops."""
        with self._guard:
            names = list(self._counts)
        for name in names:
            try:
                with personas.reading(name) as persona:
                    self._write(persona)
            except MemoryMCPError as error:
                logger.warning("the usage counts of %s are not saved: %s", name, error)

    def _write(self, persona: Persona) -> None:
        with self._guard:
            counts = self._counts.pop(persona.name, {})
        if not counts or not persona.exists:
            return
        try:
            persona.database.write(lambda connection: memory_usage.record_uses(connection, counts))
        except MemoryMCPError:  # the caller reports it; the next attempt writes these counts
            self._restore(persona.name, counts)
            raise

    def _restore(self, persona_name: str, uses: _Uses) -> None:
        with self._guard:
            counts = self._counts.setdefault(persona_name, {})
            for key, (count, at) in uses.items():
                added, latest = counts.get(key, (0, at))
                counts[key] = added + count, max(latest, at)

    def chore(self, interval: timedelta) -> Chore:
        """The chore that calls `step`."""
        return Chore("usage", self.step, lambda settings: settings.usage.enabled, lambda _: interval, has_work=self._has_counts)

    def _has_counts(self, persona_name: str) -> bool:
        return persona_name in self._counts
