"""Which memories recall has shown: counted in memory while calls are answered, and written down by a chore when nobody calls.

No call waits for it, and a process that dies loses the counts of the last minute: they order suggestions and nothing else.
"""

import threading
from collections.abc import Iterable
from datetime import datetime, timedelta

from memory_mcp.config.settings import Settings
from memory_mcp.jobs.chores import Chore
from memory_mcp.personas.registry import Persona
from memory_mcp.store import tidying

# Of one persona, until they are written down; what comes beyond is not counted.
KEYS_LIMIT = 10_000
INTERVAL = timedelta(minutes=1)

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
        with self._guard:
            noted = self._noted.pop(persona.name, {})
        if noted:
            persona.database.write(lambda connection: tidying.note_use(connection, noted))
        return False

    def chore(self) -> Chore:
        """`step`, as the worker does it."""
        return Chore("usage", self.step, lambda settings: settings.usage.enabled, lambda settings: INTERVAL)
