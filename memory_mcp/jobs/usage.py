"""Which memories recall has shown: counted in memory while calls are answered, and written down by a chore when nobody calls.

No call waits for it, and a process that is killed loses the counts of the last minutes: they order suggestions and nothing else.
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

# Of one persona, until they are written down; what comes beyond is not counted.
KEYS_LIMIT = 10_000
INTERVAL = timedelta(minutes=10)

logger = logging.getLogger(__name__)

_Uses = dict[str, tuple[int, datetime]]


class Usage:
    """Counts by persona and key. Safe to use from several threads."""

    def __init__(self) -> None:
        self._noted: dict[str, _Uses] = {}
        self._guard = threading.Lock()

    def note(self, persona_name: str, keys: Iterable[str], now: datetime) -> None:
        """These memories were shown to somebody who asked."""
        with self._guard:
            noted = self._noted.setdefault(persona_name, {})
            for key in keys:
                if key in noted or len(noted) < KEYS_LIMIT:
                    noted[key] = noted.get(key, (0, now))[0] + 1, now

    def step(self, persona: Persona, _now: datetime, _settings: Settings) -> bool:
        """Writes down what was noted of a persona. Never more to do."""
        self._write(persona)
        return False

    def write_down(self, personas: Personas) -> None:
        """Writes down what is noted of all personas: before the server stops."""
        with self._guard:
            names = list(self._noted)
        for name in names:
            try:
                with personas.reading(name) as persona:
                    self._write(persona)
            except MemoryMCPError as error:
                logger.warning("how often memories of %s were used is not written down: %s", name, error)

    def _write(self, persona: Persona) -> None:
        with self._guard:
            noted = self._noted.pop(persona.name, {})
        if not noted or not persona.exists:
            return
        try:
            persona.database.write(lambda connection: memory_usage.note_use(connection, noted))
        except MemoryMCPError:  # whoever called tells of it; the next try counts what this one could not write
            self._take_back(persona.name, noted)
            raise

    def _take_back(self, persona_name: str, uses: _Uses) -> None:
        with self._guard:
            noted = self._noted.setdefault(persona_name, {})
            for key, (count, at) in uses.items():
                since, latest = noted.get(key, (0, at))
                noted[key] = since + count, max(latest, at)

    def chore(self) -> Chore:
        """`step`, as the worker does it."""
        return Chore("usage", self.step, lambda settings: settings.usage.enabled, lambda settings: INTERVAL, wants=self._has_noted)

    def _has_noted(self, persona_name: str) -> bool:
        return persona_name in self._noted
