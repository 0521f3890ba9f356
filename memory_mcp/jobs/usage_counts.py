"""Counts how often recall shows each memory and to which caller, and how many searches find something: in memory during calls, and written to the
database by a chore.

No call waits for it. A killed process loses the counts of the last minutes, which only affect the order of suggestions. The query for
which a memory was shown is never stored by itself.
"""

import logging
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta

import apsw

from memory_mcp.config.settings import Settings
from memory_mcp.domain import Showing
from memory_mcp.errors import MemoryMCPError
from memory_mcp.jobs.chore_worker import Chore
from memory_mcp.personas.registry import Persona, Personas
from memory_mcp.store import feedback, usage_and_forgetting

# Keys of one persona between two writes; further ones are not counted.
COUNTED_LIMIT = 10_000
# How many showings are kept with their query, and how long a memory's last showing to each caller is kept.
SHOWN_LIMIT, SHOWN_DAYS = 20_000, timedelta(days=30)

logger = logging.getLogger(__name__)

_Uses = dict[str, tuple[int, datetime]]
_Shown = dict[tuple[str, str], datetime]


@dataclass(slots=True)
class _Counts:
    """The counts of one persona that are not written yet."""

    uses: _Uses = field(default_factory=dict)
    shown: _Shown = field(default_factory=dict)
    searches: dict[date, tuple[int, int]] = field(default_factory=dict)


class Usage:
    """Counts by persona and key. Thread-safe."""

    def __init__(self) -> None:
        self._counts: dict[str, _Counts] = {}
        self._lately: OrderedDict[tuple[str, str, str], Showing] = OrderedDict()
        self._guard = threading.Lock()

    def note(self, persona_name: str, keys: Sequence[str], now: datetime, caller: str = "", query: str = "") -> None:
        """Counts these memories as shown to a caller by a recall; with a query also as an answer to it, which may be none."""
        with self._guard:
            counts = self._counts.setdefault(persona_name, _Counts())
            for key in keys:
                if key in counts.uses or len(counts.uses) < COUNTED_LIMIT:
                    counts.uses[key] = counts.uses.get(key, (0, now))[0] + 1, now
                    counts.shown[caller, key] = now
                self._lately[persona_name, caller, key] = Showing(now, query)
                self._lately.move_to_end((persona_name, caller, key))
                if len(self._lately) > SHOWN_LIMIT:
                    self._lately.popitem(last=False)
            if query:
                asked, answered = counts.searches.get(now.date(), (0, 0))
                counts.searches[now.date()] = asked + 1, answered + bool(keys)

    def shown(self, persona: Persona, caller: str, keys: Sequence[str]) -> dict[str, Showing]:
        """Those of these memories that were shown to this caller lately."""
        with self._guard:
            lately = {key: self._lately.get((persona.name, caller, key)) for key in keys}
        known = {key: showing for key, showing in lately.items() if showing}
        if rest := [key for key in keys if key not in known]:
            with persona.database.read_briefly() as connection:
                known |= {key: Showing(at) for key, at in feedback.last_shown(connection, caller, rest).items()}
        return known

    def forget_queries(self) -> None:
        """Forgets for which queries memories were shown, after some were erased for good: a query may quote them."""
        with self._guard:
            self._lately = OrderedDict((shown, Showing(showing.at)) for shown, showing in self._lately.items())

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
            counts = self._counts.pop(persona.name, _Counts())
        if not (counts.uses or counts.searches) or not persona.exists:
            return

        def write(connection: apsw.Connection) -> None:
            usage_and_forgetting.record_uses(connection, counts.uses)
            if counts.shown:
                feedback.record_showings(connection, counts.shown, max(counts.shown.values()) - SHOWN_DAYS)
            feedback.record_searches(connection, counts.searches)

        try:
            persona.database.write(write)
        except MemoryMCPError:  # the caller reports it; the next attempt writes these counts
            self._restore(persona.name, counts)
            raise

    def _restore(self, persona_name: str, unwritten: _Counts) -> None:
        with self._guard:
            counts = self._counts.setdefault(persona_name, _Counts())
            for key, (count, at) in unwritten.uses.items():
                added, latest = counts.uses.get(key, (0, at))
                counts.uses[key] = added + count, max(latest, at)
            counts.shown = unwritten.shown | counts.shown
            for day, (asked, answered) in unwritten.searches.items():
                more = counts.searches.get(day, (0, 0))
                counts.searches[day] = asked + more[0], answered + more[1]

    def chore(self, interval: timedelta) -> Chore:
        """The chore that calls `step`."""
        return Chore(
            "usage",
            self.step,
            lambda settings: settings.usage.enabled,
            lambda _: interval,
            has_work=self._counts.__contains__,
            with_work=lambda: list(self._counts),
        )
