"""Which persona the index worker serves next: the pending work, progress and pause after a failure of each persona.

Requests are counted, not flagged: a write that comes while its persona is being indexed makes the count higher than the one that
the work started with, and is not lost.
"""

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from memory_mcp.config.settings import VectorRebuild
from memory_mcp.jobs.backoff import Backoff, elapsed


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a persona's re-embedding, in chunks."""

    done: int
    total: int


@dataclass(slots=True)
class Task:
    """The index work of one persona.

    `writes` and `rebuild_requests` count what was requested; `indexed_writes` and `rebuilds_done` are the counts up to which it is done.
    `batches` counts the batches. `prepared_for` holds the loaded generations and the chunking rule that the index was last prepared for;
    `after` is the last chunk re-embedded in the new generation.
    """

    writes: int = 0
    indexed_writes: int = 0
    rebuild_requests: int = 0
    rebuilds_done: int = 0
    batches: int = 0
    prepared_for: tuple[str, ...] = ()
    after: int = 0
    progress: Progress | None = None
    outdated: bool = False
    saved_at: datetime | None = None
    rebuilt_at: datetime | None = None
    backoff: Backoff = field(default_factory=Backoff)

    def to_index(self, loaded: tuple[str, ...]) -> bool:
        """Whether there are writes to index, or the index was prepared for other models than the `loaded` ones."""
        return self.writes != self.indexed_writes or self.prepared_for != loaded


class IndexSchedule:
    """The tasks of all personas, in the order of their turns. Any thread may add work; one thread does it."""

    def __init__(self) -> None:
        self._tasks: dict[str, Task] = {}
        self._guard = threading.Lock()

    def add(self, names: Iterable[str]) -> None:
        """Adds personas. Everything of a new one is still to be indexed."""
        with self._guard:
            for name in names:
                self._tasks.setdefault(name, Task())

    def note_write(self, name: str) -> None:
        """Counts a write of a persona."""
        with self._guard:
            self._tasks.setdefault(name, Task()).writes += 1

    def request_rebuild(self, name: str) -> None:
        with self._guard:
            self._tasks.setdefault(name, Task()).rebuild_requests += 1

    def of(self, name: str) -> Task:
        with self._guard:
            return self._tasks.setdefault(name, Task())

    def forget(self, name: str, writes: int) -> None:
        """Forgets a persona that did not exist after so many writes, unless one has made it since."""
        with self._guard:
            if name in self._tasks and self._tasks[name].writes == writes:
                del self._tasks[name]

    def next_to_index(self, now: datetime, loaded: tuple[str, ...]) -> str | None:
        """The next persona with something to index. It moves to the end of the line."""
        with self._guard:
            for name, task in self._tasks.items():
                if task.to_index(loaded) and task.backoff.over(now):
                    self._tasks[name] = self._tasks.pop(name)
                    return name
        return None

    def next_to_save(self, now: datetime, unsaved: Iterable[str], rules: VectorRebuild) -> str | None:
        """The next persona whose open index may be saved, among those with `unsaved` changes."""
        with self._guard:
            for name in unsaved:
                task = self._tasks.get(name)
                if task and task.backoff.over(now) and elapsed(task.saved_at, now, rules.min_interval):
                    return name
        return None

    def next_to_rebuild(self, now: datetime, called_at: datetime, rules: VectorRebuild) -> str | None:
        """The next persona whose index is to be rebuilt: at once if requested, otherwise as `vector_rebuild` allows."""
        allowed = rules.mode == "auto" or (rules.mode == "idle" and elapsed(called_at, now, rules.idle_seconds))
        with self._guard:
            for name, task in self._tasks.items():
                due = task.outdated and allowed and elapsed(task.rebuilt_at, now, rules.min_interval)
                if (due or task.rebuild_requests != task.rebuilds_done) and task.backoff.over(now):
                    return name
        return None

    def snapshot(self) -> Mapping[str, Task]:
        with self._guard:
            return dict(self._tasks)
