"""What waits for the model workers: jobs in lanes by urgency, and inside a lane the owners in turn."""

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

_NEWEST_WEIGHT = 0.2  # of the newest figure in a moving average


class Urgency(IntEnum):
    """Which jobs go first. A query's embedding takes milliseconds and everything else of its call waits for it."""

    QUERY = 0
    RERANK = 1
    BULK = 2


@dataclass(frozen=True, slots=True)
class Job:
    """One item of work; `weight` compares it with others of its lane. Jobs with equal `work` may be done by one call with all of their items."""

    work: Callable[[list[Any]], Sequence[Any]]
    item: Any
    future: Future[Any]
    urgency: Urgency
    deadline: float | None
    weight: float = 1.0
    since: float = field(default_factory=time.monotonic)


class Lane:
    """What waits with one urgency, and how long its jobs take. Its owner guards it with a lock."""

    def __init__(self) -> None:
        self._turns: OrderedDict[str, deque[Job]] = OrderedDict()
        self._ended_at: float | None = None  # when a job ended last while others waited
        self.waiting = 0
        self.average_seconds = 0.0
        self.pace_seconds = 0.0
        self.average_weight = 0.0

    def put(self, owner: str, job: Job) -> None:
        """At the end of its owner's queue."""
        self._turns.setdefault(owner, deque()).append(job)
        self.waiting += 1

    def take(self, limit: int = 1) -> list[Job]:
        """The next job, and of those right behind it so many that it can be done with: at most `limit` in all."""
        taken = [self._pop()]
        while len(taken) < limit and self.waiting and self._next().work == taken[0].work:
            taken.append(self._pop())
        return taken

    def waited_seconds(self, now: float) -> float:
        """How long the next job has waited. Only for a lane in which one waits."""
        return now - self._next().since

    def ahead_of(self, owner: str, jobs: int) -> int:
        """How many of the waiting jobs go before the last of so many new ones of this owner."""
        mine = len(self._turns.get(owner, ()))
        others = len(self._turns) - (1 if mine else 0)
        return mine + min(self.waiting - mine, (mine + jobs) * others)

    def learn(self, jobs: int, took_seconds: float, now: float, weight: float) -> None:
        """So many jobs, of this weight together, took so long and have ended now."""
        self.average_weight = _moved(self.average_weight, weight / jobs)
        self.average_seconds = _moved(self.average_seconds, took_seconds / jobs)
        if self._ended_at is not None:
            self.pace_seconds = _moved(self.pace_seconds, (now - self._ended_at) / jobs)
        self._ended_at = now if self.waiting else None  # the next interval would be idleness

    def as_jobs(self, weight: float) -> float:
        """How many jobs of the usual weight this is as much as."""
        return weight / self.average_weight if self.average_weight else 1.0

    def _next(self) -> Job:
        return next(iter(self._turns.values()))[0]

    def _pop(self) -> Job:
        owner, jobs = self._turns.popitem(last=False)
        job = jobs.popleft()
        self.waiting -= 1
        if jobs:
            self._turns[owner] = jobs  # at the end: the others come first
        return job


def _moved(average: float, newest: float) -> float:
    return average + (newest - average) * (_NEWEST_WEIGHT if average else 1)
