"""The jobs that wait for a model worker: one queue for each urgency, in which owners take turns."""

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

_NEWEST_WEIGHT = 0.2  # of the newest value in a moving average
RECENT_SECONDS = 1.0


class Urgency(IntEnum):
    """Which jobs run first. Embedding a query takes milliseconds, and the rest of its call waits for it."""

    QUERY = 0
    RERANK = 1
    BULK = 2


@dataclass(frozen=True, slots=True)
class Job:
    """One item of work. `weight` compares its cost with other jobs of its urgency. One call may run several jobs with equal `work`."""

    work: Callable[[list[Any]], Sequence[Any]]
    item: Any
    future: Future[Any]
    urgency: Urgency
    deadline: float | None
    weight: float = 1.0
    since: float = field(default_factory=time.monotonic)


class JobQueue:
    """The waiting jobs of one urgency, and how long they take. Not thread-safe: its owner holds a lock."""

    def __init__(self) -> None:
        self._by_owner: OrderedDict[str, deque[Job]] = OrderedDict()  # the owner whose turn is next comes first
        self._ended_at: float | None = None  # when the last job ended, if others were waiting
        self._measured_at = float("-inf")
        self.waiting = 0
        self.average_seconds = 0.0
        self.pace_seconds = 0.0
        self.average_weight = 0.0

    def put(self, owner: str, job: Job) -> None:
        """Adds a job at the end of its owner's queue."""
        self._by_owner.setdefault(owner, deque()).append(job)
        self.waiting += 1

    def take(self, limit: int = 1) -> list[Job]:
        """The next job and the jobs right behind it that the same call can run, `limit` at most."""
        taken = [self._pop()]
        while len(taken) < limit and self.waiting and self._next().work == taken[0].work:
            taken.append(self._pop())
        return taken

    def waited_seconds(self, now: float) -> float:
        """How long the next job has waited. The queue must not be empty."""
        return now - self._next().since

    def ahead_of(self, owner: str, jobs: int) -> int:
        """How many of the waiting jobs would run before the last of `jobs` new ones of this owner."""
        own_jobs = len(self._by_owner.get(owner, ()))
        others = len(self._by_owner) - (1 if own_jobs else 0)
        return own_jobs + min(self.waiting - own_jobs, (own_jobs + jobs) * others)

    def record(self, jobs: int, seconds: float, now: float, weight: float) -> None:
        """Updates the averages after `jobs` jobs with this total weight took `seconds` and ended at `now`."""
        self.average_weight = _moved(self.average_weight, weight / jobs)
        self.average_seconds = _moved(self.average_seconds, seconds / jobs)
        if self._ended_at is not None:
            self.pace_seconds = _moved(self.pace_seconds, (now - self._ended_at) / jobs)
        self._ended_at = now if self.waiting else None  # the next interval would include idle time
        self._measured_at = now

    def is_measured(self, now: float) -> bool:
        """Whether the averages are of a moment ago."""
        return now - self._measured_at < RECENT_SECONDS

    def as_jobs(self, weight: float) -> float:
        """How many jobs of average weight this weight equals."""
        return weight / self.average_weight if self.average_weight else 1.0

    def _next(self) -> Job:
        return next(iter(self._by_owner.values()))[0]

    def _pop(self) -> Job:
        owner, jobs = self._by_owner.popitem(last=False)
        job = jobs.popleft()
        self.waiting -= 1
        if jobs:
            self._by_owner[owner] = jobs  # at the end: the other owners come first
        return job


def _moved(average: float, newest: float) -> float:
    return average + (newest - average) * (_NEWEST_WEIGHT if average else 1)
