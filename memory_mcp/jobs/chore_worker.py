"""When each chore runs, for which persona, and what happens if it fails. `chores` lists the chores and their intervals.

`ChoreWorker.step` does one small piece for one persona and returns how long to wait before the next; the thread only repeats it.
This state is lost at a restart: every chore then checks every persona again, some at a time, and finds in the store what is done already.
What is neither due nor waits for a time is not kept, so that personas without writes cost nothing.
"""

import heapq
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from memory_mcp.config.settings import Settings
from memory_mcp.jobs.backoff import Backoff, elapsed, record_failure
from memory_mcp.jobs.step_thread import POLL_SECONDS, StepThread
from memory_mcp.personas.registry import Persona, Personas

# On a server that is never idle, a chore that has been due for so long runs between two calls.
OVERDUE_SECONDS = 3600.0
# So many personas at a time are looked at after a start.
LOOKED_AT_ONCE = 50


@dataclass(frozen=True, slots=True)
class Chore:
    """Work that is done for each persona from time to time, while the server is idle.

    `step` does one small piece and returns whether there may be more; it must be cheap if there is nothing to do, and safe if the
    process is killed in it. `interval` is the least time between two rounds for one persona.

    A persona should not be opened only to find that there is nothing to do: with `only_after_writes`, a persona without writes since
    its last round is skipped until the time that `next_due` gave at the end of that round, or until config.json changes. With
    `has_work`, only personas for which it returns true have a round; `with_work` names all of them. A chore with `changes_memories` may create work for the others.
    """

    name: str
    step: Callable[[Persona, datetime, Settings], bool]
    enabled: Callable[[Settings], bool] = lambda _: True
    interval: Callable[[Settings], timedelta] = lambda _: timedelta()
    only_after_writes: bool = False
    next_due: Callable[[Persona, datetime, Settings], datetime | None] | None = None
    has_work: Callable[[str], bool] | None = None
    with_work: Callable[[], Iterable[str]] | None = None
    changes_memories: bool = True


@dataclass(frozen=True, slots=True)
class ChoreStatus:
    """The state of one chore: for which personas it is due, when it last finished, and which personas are paused after a failure."""

    enabled: bool
    due: tuple[str, ...]
    last_done: datetime | None
    failing: tuple[str, ...]
    last_error: str | None


@dataclass(slots=True)
class _Round:
    """One chore of one persona. Writes and requests are counted, so that one that comes during a round is not lost."""

    writes: int = 1
    handled_writes: int = 0
    requests: int = 0
    handled_requests: int = 0
    due_since: datetime | None = None
    done_at: datetime | None = None
    started_at: tuple[int, int] | None = None  # the counts `writes` and `requests` at the start of the current round
    worked: bool = False  # whether the current round has done something
    next_due: datetime | None = None
    settings: Settings | None = None  # the settings that `next_due` was computed from
    backoff: Backoff = field(default_factory=Backoff)
    rests_until: datetime | None = None  # of one that is put aside

    def is_due(self, chore: Chore, name: str, now: datetime, settings: Settings) -> bool:
        if self.started_at is not None:
            return True
        if not elapsed(self.done_at, now, chore.interval(settings).total_seconds()) or (chore.has_work and not chore.has_work(name)):
            return False
        if not chore.only_after_writes or self.writes != self.handled_writes:
            return True
        if chore.next_due is None:
            return False
        same_settings = self.settings is settings or self.settings == settings
        return not same_settings or (self.next_due is not None and self.next_due <= now)

    def may_be_due_at(self, chore: Chore, settings: Settings) -> datetime | None:
        """When to check a round again that is not due; None if only a write or a request makes it due."""
        if self.done_at is None:
            return None
        earliest = self.done_at + chore.interval(settings)
        if self.next_due and self.writes == self.handled_writes:
            return max(earliest, self.next_due)
        return earliest if self.writes > 1 or not chore.only_after_writes else None


class ChoreWorker:
    """Does the chores of all personas, one small piece at a time, in turns, while the server is idle."""

    def __init__(
        self, personas: Personas, chores: Sequence[Chore], settings: Callable[[], Settings], clock: Callable[[], datetime]
    ) -> None:
        self._personas, self._chores, self._settings, self._clock = personas, tuple(chores), settings, clock
        # In the order of their turns: the next one is found at once, however many are due.
        self._rounds: OrderedDict[tuple[str, str], _Round] = OrderedDict()
        # Rounds that are not due before a time, and these times; a round that is back in the line leaves its time until then.
        self._resting: dict[tuple[str, str], _Round] = {}
        self._alarms: list[tuple[datetime, tuple[str, str]]] = []
        self._looked_until: str | None = None  # the name up to which personas were looked at since the start; None for all
        self._seen: tuple[Settings, tuple[str, ...]] | None = None  # the settings, and the chores that are turned on
        self._guard = threading.Lock()
        self._last_done: dict[str, datetime] = {}
        self._last_error: dict[str, str] = {}
        self._failing: set[tuple[str, str]] = set()  # (chore, persona)
        self._called_at = self._seen_now = clock()
        self._thread = StepThread("upkeep worker", lambda: self.step(clock()))

    def wake(self, persona_name: str, but: Chore | None = None) -> None:
        """Call it after a write of this persona has been committed: all chores are due, `but` the one that has written."""
        with self._guard:
            for chore in self._chores:
                if chore is not but:
                    self._round((chore.name, persona_name)).writes += 1

    def _round(self, key: tuple[str, str]) -> _Round:
        """The round of a chore and a persona, in the line; a new one if there is none."""
        if key not in self._rounds:
            self._rounds[key] = self._resting.pop(key) if key in self._resting else _Round()
        return self._rounds[key]

    def request(self, chore_name: str, persona_name: str) -> None:
        """Runs this chore for this persona next, regardless of its interval and of calls."""
        with self._guard:
            self._round((chore_name, persona_name)).requests += 1
        self._thread.wake()

    def forget(self, persona_name: str) -> None:
        """Call it after a persona was deleted."""
        with self._guard:
            self._forget(persona_name)

    def _forget(self, persona_name: str) -> None:
        for chore in self._chores:
            self._rounds.pop((chore.name, persona_name), None)
            self._resting.pop((chore.name, persona_name), None)
            self._failing.discard((chore.name, persona_name))

    def note_call(self) -> None:
        """Call it for each call of the server: chores have to wait."""
        self._called_at = self._clock()

    def start(self) -> None:
        self._looked_until = ""
        self._thread.start()

    def stop(self) -> None:
        """Ends after the current piece. Can be called twice."""
        self._thread.stop()

    def status(self) -> Mapping[str, ChoreStatus]:
        """The state of each chore, by name."""
        settings, now = self._settings(), self._clock()
        enabled = {chore.name: chore for chore in self._chores if chore.enabled(settings)}
        with self._guard:
            self._take_rested(now)
            looked_until = self._looked_until
            waiting = () if looked_until is None else tuple(self._personas.stores(looked_until))
            due = [
                (chore, name)
                for (chore, name), round_ in self._rounds.items()
                if chore in enabled and (round_.requests != round_.handled_requests or round_.is_due(enabled[chore], name, now, settings))
            ]
            failing = set(self._failing)
        return {
            chore.name: ChoreStatus(
                enabled=chore.name in enabled,
                # `waiting` may be 100,000 names, in order, and everyone behind `looked_until` is among them.
                due=(
                    *sorted(name for due_chore, name in due if due_chore == chore.name and (not waiting or name <= str(looked_until))),
                    *(waiting if chore.name in enabled else ()),
                ),
                last_done=self._last_done.get(chore.name),
                failing=tuple(sorted(name for failed_chore, name in failing if failed_chore == chore.name)),
                last_error=self._last_error.get(chore.name),
            )
            for chore in self._chores
        }

    def summary(self) -> Mapping[str, tuple[datetime | None, int]]:
        """When each chore last finished, and for how many personas it fails. Unlike `status`, costs the same with any number of personas."""
        with self._guard:
            failing = Counter(chore for chore, _ in self._failing)
        return {chore.name: (self._last_done.get(chore.name), failing[chore.name]) for chore in self._chores}

    def step(self, now: datetime) -> float:
        """Does the next piece of work. Returns how many seconds to wait before the next: 0 if there may be more."""
        settings = self._settings()
        work = self._next(now, settings)
        if work is None:
            return POLL_SECONDS
        chore, name, round_ = work
        self._attempt(chore, name, round_, now, settings)
        return 0

    def _next(self, now: datetime, settings: Settings) -> tuple[Chore, str, _Round] | None:
        """The next requested chore, or one that is due if the server is idle, or one that has been due for too long."""
        idle = elapsed(self._called_at, now, settings.upkeep.idle_seconds)
        enabled = {chore.name: chore for chore in self._chores if chore.enabled(settings)}
        with self._guard:
            self._take_more(enabled, now, settings, idle=idle)
            left: list[tuple[tuple[str, str], _Round, Chore | None]] = []
            chosen: tuple[Chore, str, _Round] | None = None
            for key, round_ in self._rounds.items():
                chore = enabled.get(key[0])
                if chore is None:
                    left.append((key, round_, None))
                    continue
                if not round_.backoff.over(now):
                    continue
                if round_.requests == round_.handled_requests:
                    if not round_.is_due(chore, key[1], now, settings):
                        left.append((key, round_, chore))
                        continue
                    round_.due_since = round_.due_since or now
                    if not idle and not elapsed(round_.due_since, now, OVERDUE_SECONDS):
                        continue
                chosen = chore, key[1], round_
                break
            for key, round_, chore in left:
                if chore:
                    self._put_aside(key, round_, chore, settings, now)
                else:
                    self._forgo(key, round_)
            if chosen:
                self._rounds.move_to_end((chosen[0].name, chosen[1]))
                chosen[2].started_at = chosen[2].started_at or (chosen[2].writes, chosen[2].requests)
        return chosen

    def _take_more(self, enabled: Mapping[str, Chore], now: datetime, settings: Settings, *, idle: bool) -> None:
        """Takes into the line what a time has come for, who has work, and after a start or a change of the settings the next personas."""
        seen = (settings, tuple(enabled))
        if self._seen is not None and self._seen != seen:
            self._looked_until = ""
        self._seen = seen
        self._take_rested(now)
        for chore in enabled.values():
            for name in chore.with_work() if chore.with_work else ():
                self._round((chore.name, name))
        if self._looked_until is not None and idle and len(self._rounds) < LOOKED_AT_ONCE:
            names = self._personas.stores(self._looked_until, LOOKED_AT_ONCE)
            for key in [(chore.name, name) for name in names for chore in enabled.values()]:
                self._round(key)
            self._looked_until = names[-1] if len(names) == LOOKED_AT_ONCE else None

    def _take_rested(self, now: datetime) -> None:
        if now < self._seen_now:  # the clock was set back: what rests until a time that is far off now
            for key in list(self._resting):
                self._round(key)
            self._alarms.clear()
        self._seen_now = now
        while self._alarms and self._alarms[0][0] <= now:
            until, key = heapq.heappop(self._alarms)
            if key in self._resting and self._resting[key].rests_until == until:
                self._round(key)

    def _forgo(self, key: tuple[str, str], round_: _Round) -> None:
        """Drops the round of a chore that is turned off: turning it on has it look at everybody."""
        if round_.requests == round_.handled_requests and not round_.backoff.failures:
            del self._rounds[key]

    def _put_aside(self, key: tuple[str, str], round_: _Round, chore: Chore, settings: Settings, now: datetime) -> None:
        """Takes a round that is not due out of the line, to be looked at again when it may be."""
        round_.due_since = None
        if round_.backoff.failures or (chore.has_work and not chore.with_work):
            return
        del self._rounds[key]
        round_.rests_until = round_.may_be_due_at(chore, settings)
        if round_.rests_until and round_.rests_until > now:
            self._resting[key] = round_
            heapq.heappush(self._alarms, (round_.rests_until, key))

    def _attempt(self, chore: Chore, name: str, round_: _Round, now: datetime, settings: Settings) -> None:
        """Does one piece for one persona. If it fails, that persona is paused, and the others go on."""
        asked = round_.writes, round_.requests
        try:
            with self._personas.reading(name) as persona:
                if not persona.exists:
                    with self._guard:
                        if asked == (round_.writes, round_.requests):  # else it was made just now
                            self._forget(name)
                    return
                more = chore.step(persona, now, settings)
                next_due = chore.next_due(persona, now, settings) if chore.next_due and not more else None
        except Exception as error:  # noqa: BLE001  `record_failure` logs it, and the other personas go on
            self._last_error[chore.name] = record_failure(f"{chore.name} of {name}", round_.backoff, error, now)
            with self._guard:
                if (chore.name, name) in self._rounds:
                    self._failing.add((chore.name, name))
        else:
            round_.backoff.clear()
            with self._guard:
                self._failing.discard((chore.name, name))
            if more:
                round_.worked = True
            else:
                if round_.worked and chore.changes_memories:  # forgetting, for example, changes summaries
                    self.wake(name, but=chore)
                self._finish(chore, round_, now, settings, next_due)

    def _finish(self, chore: Chore, round_: _Round, now: datetime, settings: Settings, next_due: datetime | None) -> None:
        with self._guard:
            if round_.started_at:
                round_.handled_writes, round_.handled_requests = round_.started_at
            round_.started_at, round_.due_since, round_.done_at, round_.worked = None, None, now, False
            round_.next_due, round_.settings = next_due, settings
        self._last_done[chore.name] = now
