"""Who has something to do: for each persona what was asked, what was done, and until when it is put off.

What was asked is counted, not flagged: a write that comes while its persona is being worked on is a higher number than the one
that the work began with, and is not lost.
"""

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from memory_mcp.config.settings import VectorRebuild

RETRY_FIRST_SECONDS, RETRY_LONGEST_SECONDS = 1.0, 60.0


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a persona has come on the way to another generation, in chunks."""

    done: int
    total: int


@dataclass(slots=True)
class Backoff:
    """Twice as long after each failure: 1 s, 2 s, … 60 s."""

    failures: int = 0
    until: datetime | None = None
    why: str = ""

    def failed(self, now: datetime, why: str = "") -> bool:
        """Whether that is news: the first failure, or another than the last."""
        is_news = not self.failures or why != self.why
        self.why = why
        seconds = min(RETRY_FIRST_SECONDS * 2.0 ** min(self.failures, 10), RETRY_LONGEST_SECONDS)
        self.failures += 1
        self.until = now + timedelta(seconds=seconds)
        return is_news

    def over(self, now: datetime) -> bool:
        # A clock that was set back must not put anything off for longer than was meant.
        return self.until is None or not timedelta() < self.until - now <= timedelta(seconds=RETRY_LONGEST_SECONDS)

    def clear(self) -> None:
        self.failures, self.until, self.why = 0, None, ""


@dataclass(slots=True)
class Task:
    """One persona's. `woken` and `asked` count what was wanted (indexing, a rebuild); `looked` and `answered` say how far that is done.

    `batches` counts what was done on the way. `settled_for` are the loaded generations, and how long texts are split, that it was
    last looked over for; `after` is where the way to another generation stands.
    """

    woken: int = 0
    looked: int = 0
    asked: int = 0
    answered: int = 0
    batches: int = 0
    settled_for: tuple[str, ...] = ()
    after: int = 0
    progress: Progress | None = None
    outdated: bool = False
    saved_at: datetime | None = None
    rebuilt_at: datetime | None = None
    backoff: Backoff = field(default_factory=Backoff)

    def to_index(self, loaded: tuple[str, ...]) -> bool:
        """Whether something was written, or other models are `loaded` than it was looked over for."""
        return self.woken != self.looked or self.settled_for != loaded


class Ledger:
    """The tasks of all personas, in the order of their turns. Any thread may ask for work; one does it."""

    def __init__(self) -> None:
        self._tasks: dict[str, Task] = {}
        self._guard = threading.Lock()

    def know(self, names: Iterable[str]) -> None:
        """These exist. One that is new here has everything still to be looked at."""
        with self._guard:
            for name in names:
                self._tasks.setdefault(name, Task())

    def wake(self, name: str) -> None:
        """This one has something to index."""
        with self._guard:
            self._tasks.setdefault(name, Task()).woken += 1

    def ask_for_rebuild(self, name: str) -> None:
        with self._guard:
            self._tasks.setdefault(name, Task()).asked += 1

    def of(self, name: str) -> Task:
        with self._guard:
            return self._tasks.setdefault(name, Task())

    def forget(self, name: str) -> None:
        with self._guard:
            self._tasks.pop(name, None)

    def next_to_index(self, now: datetime, loaded: tuple[str, ...]) -> str | None:
        """Whose turn it is among those with something to index. It goes to the end of the line."""
        with self._guard:
            for name, task in self._tasks.items():
                if task.to_index(loaded) and task.backoff.over(now):
                    self._tasks[name] = self._tasks.pop(name)
                    return name
        return None

    def next_to_save(self, now: datetime, unsaved: Iterable[str], rules: VectorRebuild) -> str | None:
        """Whose open index may be written to its file, among those whose file is older."""
        with self._guard:
            for name in unsaved:
                task = self._tasks.get(name)
                if task and task.backoff.over(now) and passed(task.saved_at, now, rules.min_interval):
                    return name
        return None

    def next_to_rebuild(self, now: datetime, called_at: datetime, rules: VectorRebuild) -> str | None:
        """Whose index is to be made anew: on request at once, otherwise as `vector_rebuild` allows."""
        allowed = rules.mode == "auto" or (rules.mode == "idle" and passed(called_at, now, rules.idle_seconds))
        with self._guard:
            for name, task in self._tasks.items():
                due = task.outdated and allowed and passed(task.rebuilt_at, now, rules.min_interval)
                if (due or task.asked != task.answered) and task.backoff.over(now):
                    return name
        return None

    def snapshot(self) -> Mapping[str, Task]:
        with self._guard:
            return dict(self._tasks)


def passed(since: datetime | None, now: datetime, seconds: float) -> bool:
    """Whether so much time lies between the two, whichever way the clock was set meanwhile."""
    return since is None or abs(now - since) >= timedelta(seconds=seconds)
