"""Upkeep that can wait: when each chore is done, for whom, and what happens if it fails. What a chore does lives below.

`ChoreWorker.step` does one small piece for one persona and says how long to wait before the next; the thread only repeats it.
Nothing here survives a restart: after one every chore looks at every persona again, and finds in the store what is done already.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from memory_mcp.config.settings import Settings
from memory_mcp.jobs.backoff import put_off
from memory_mcp.jobs.index_schedule import Backoff, passed
from memory_mcp.jobs.step_thread import POLL_SECONDS, Stepping
from memory_mcp.personas.registry import Persona, Personas

# Where somebody calls day and night, a chore that has been due for so long is done between two calls.
OVERDUE_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class Chore:
    """Something that is done for each persona now and then, while nobody calls.

    `step` does one small piece at the given moment and returns whether there may be more; it must be cheap where nothing is to be
    done, and lose nothing when the process dies in it. `interval` is the least time between two rounds of one persona.

    A persona that has nothing to do need not be opened to find that out: with `only_after_writes` one that nothing was written to since
    its last round is left alone, until the moment that `next_due` named at the end of that round, or until config.json changes. Where
    there is `wants`, only those that it says yes to have a round. What a chore with `changes_memories` does may give the others something
    to do.
    """

    name: str
    step: Callable[[Persona, datetime, Settings], bool]
    enabled: Callable[[Settings], bool] = lambda _: True
    interval: Callable[[Settings], timedelta] = lambda _: timedelta()
    only_after_writes: bool = False
    next_due: Callable[[Persona, datetime, Settings], datetime | None] | None = None
    wants: Callable[[str], bool] | None = None
    changes_memories: bool = True


@dataclass(frozen=True, slots=True)
class ChoreStatus:
    """How one chore is doing: for whom it is due, when it was last done to its end, and which personas wait after a failure."""

    enabled: bool
    due: tuple[str, ...]
    last_done: datetime | None
    failing: tuple[str, ...]
    last_error: str | None


@dataclass(slots=True)
class _Round:
    """One chore of one persona. `written` and `asked` count, so that what comes while a round runs is not lost."""

    written: int = 1
    seen: int = 0
    asked: int = 0
    answered: int = 0
    due_since: datetime | None = None
    done_at: datetime | None = None
    began: tuple[int, int] | None = None  # `written` and `asked` as they were when the round under way began
    worked: bool = False  # whether the round under way has done something
    next_due: datetime | None = None
    settings: Settings | None = None  # those that `next_due` follows from
    backoff: Backoff = field(default_factory=Backoff)

    def is_due(self, chore: Chore, name: str, now: datetime, settings: Settings) -> bool:
        if self.began is not None:
            return True
        if not passed(self.done_at, now, chore.interval(settings).total_seconds()) or (chore.wants and not chore.wants(name)):
            return False
        if not chore.only_after_writes or self.written != self.seen:
            return True
        if chore.next_due is None:
            return False
        same_rules = self.settings is settings or self.settings == settings
        return not same_rules or (self.next_due is not None and self.next_due <= now)


class ChoreWorker:
    """Does the chores of all personas, one small piece at a time and each in its turn, while nobody calls."""

    def __init__(
        self, personas: Personas, chores: Sequence[Chore], settings: Callable[[], Settings], clock: Callable[[], datetime]
    ) -> None:
        self._personas, self._chores, self._settings, self._clock = personas, tuple(chores), settings, clock
        self._rounds: dict[tuple[str, str], _Round] = {}
        self._guard = threading.Lock()
        self._last_done: dict[str, datetime] = {}
        self._last_error: dict[str, str] = {}
        self._called_at = clock()
        self._thread = Stepping("upkeep worker", lambda: self.step(clock()))

    def wake(self, persona_name: str) -> None:
        """A write of this persona is on the disk."""
        with self._guard:
            for chore in self._chores:
                self._rounds.setdefault((chore.name, persona_name), _Round()).written += 1

    def _wake_others(self, chore: Chore, persona_name: str) -> None:
        """What one chore has done in its round may give the others something to do, as what is forgotten does to summaries."""
        with self._guard:
            for other in self._chores:
                round_ = self._rounds.get((other.name, persona_name))
                if round_ and other is not chore:
                    round_.written += 1

    def request(self, chore_name: str, persona_name: str) -> None:
        """Does this chore for this persona next, whatever its interval says and whoever calls."""
        with self._guard:
            self._rounds.setdefault((chore_name, persona_name), _Round()).asked += 1
        self._thread.wake()

    def forget(self, persona_name: str) -> None:
        """This persona is no more."""
        with self._guard:
            for chore in self._chores:
                self._rounds.pop((chore.name, persona_name), None)

    def note_call(self) -> None:
        """Somebody uses the server: upkeep has to wait."""
        self._called_at = self._clock()

    def start(self) -> None:
        with self._guard:
            for name in self._personas.names():
                for chore in self._chores:
                    self._rounds.setdefault((chore.name, name), _Round())
        self._thread.start()

    def stop(self) -> None:
        """Ends after the piece that is under way. May be called twice."""
        self._thread.stop()

    def status(self) -> Mapping[str, ChoreStatus]:
        """Of each chore, by its name."""
        settings, now = self._settings(), self._clock()
        enabled = {chore.name: chore for chore in self._chores if chore.enabled(settings)}
        with self._guard:
            due = [
                (chore, name)
                for (chore, name), round_ in self._rounds.items()
                if chore in enabled and (round_.asked != round_.answered or round_.is_due(enabled[chore], name, now, settings))
            ]
            failing = [(chore, name) for (chore, name), round_ in self._rounds.items() if round_.backoff.failures]
        return {
            chore.name: ChoreStatus(
                enabled=chore.name in enabled,
                due=tuple(sorted(name for wanted, name in due if wanted == chore.name)),
                last_done=self._last_done.get(chore.name),
                failing=tuple(sorted(name for failed, name in failing if failed == chore.name)),
                last_error=self._last_error.get(chore.name),
            )
            for chore in self._chores
        }

    def step(self, now: datetime) -> float:
        """Does the next piece of work there is. Returns how many seconds to wait before the next: 0 if there may be more."""
        settings = self._settings()
        found = self._next(now, settings)
        if found is None:
            return POLL_SECONDS
        chore, name, round_ = found
        self._attempt(chore, name, round_, now, settings)
        return 0

    def _next(self, now: datetime, settings: Settings) -> tuple[Chore, str, _Round] | None:
        """What was asked for, else what is due while nobody calls, else what has been due for too long."""
        idle = passed(self._called_at, now, settings.upkeep.idle_seconds)
        enabled = {chore.name: chore for chore in self._chores if chore.enabled(settings)}
        with self._guard:
            for key, round_ in self._rounds.items():
                chore = enabled.get(key[0])
                if chore is None or not round_.backoff.over(now):
                    continue
                if round_.asked == round_.answered:
                    if not round_.is_due(chore, key[1], now, settings):
                        round_.due_since = None
                        continue
                    round_.due_since = round_.due_since or now
                    if not idle and not passed(round_.due_since, now, OVERDUE_SECONDS):
                        continue
                self._rounds[key] = self._rounds.pop(key)  # to the end of the line
                round_.began = round_.began or (round_.written, round_.asked)
                return chore, key[1], round_
        return None

    def _attempt(self, chore: Chore, name: str, round_: _Round, now: datetime, settings: Settings) -> None:
        """One piece for one persona. If it fails, that persona is put off, and the others go on."""
        try:
            with self._personas.reading(name) as persona:
                if not persona.exists:
                    self.forget(name)
                    return
                more = chore.step(persona, now, settings)
                next_due = chore.next_due(persona, now, settings) if chore.next_due and not more else None
        except Exception as error:  # noqa: BLE001  whatever it is, `put_off` logs it, and the others have their turns
            self._last_error[chore.name] = put_off(f"{chore.name} of {name}", round_.backoff, error, now)
        else:
            round_.backoff.clear()
            if more:
                round_.worked = True
            else:
                if round_.worked and chore.changes_memories:
                    self._wake_others(chore, name)
                self._finish(chore, round_, now, settings, next_due)

    def _finish(self, chore: Chore, round_: _Round, now: datetime, settings: Settings, next_due: datetime | None) -> None:
        with self._guard:
            if round_.began:
                round_.seen, round_.answered = round_.began
            round_.began, round_.due_since, round_.done_at, round_.worked = None, None, now, False
            round_.next_due, round_.settings = next_due, settings
        self._last_done[chore.name] = now
