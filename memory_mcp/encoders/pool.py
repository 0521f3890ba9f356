"""The model workers: one thread for each core, shared by everyone. What is urgent goes first, and owners take turns.

One model call on one thread, several side by side, beats one call on all threads: two threads that wait for each other by
spinning made 9 ms into 1,500 on a busy machine, and chunks of 4 pairs on two workers halve the time of one large batch.

Fairness has two halves. Within an urgency, the owners that have something waiting take turns, job by job, so a persona with
hundreds of jobs delays another by one job. And bulk work leaves a worker free while somebody is asking, because a job that
has begun can't be interrupted.

A query goes before reranking, but when both are in demand without end, reranking keeps a third of the time: otherwise fifty
callers who ask again at once would be answered by nothing but embeddings.
"""

import logging
import os
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import IntEnum
from types import TracebackType
from typing import Any, Self, TypeVar

from memory_mcp.errors import EncoderFailed

Result = TypeVar("Result")

ASKED_LATELY_SECONDS = 1.0
QUERY_SHARE = 2.0  # of the time that queries and reranking want both, for each 1 that reranking gets
SHUTDOWN_SECONDS = 10.0
_NEWEST_WEIGHT = 0.2  # of the newest duration in the moving average

logger = logging.getLogger(__name__)

_owner: ContextVar[str] = ContextVar("owner", default="")


class Urgency(IntEnum):
    """Which jobs go first. A query's embedding takes milliseconds and everything else of its call waits for it."""

    QUERY = 0
    RERANK = 1
    BULK = 2


@contextmanager
def on_behalf_of(owner: str) -> Iterator[None]:
    """Whose turn the jobs count as that this thread submits inside, such as a persona's name. Outside all share one turn."""
    token = _owner.set(owner)
    try:
        yield
    finally:
        _owner.reset(token)


@dataclass(frozen=True, slots=True)
class _Job:
    work: Callable[[], Any]
    future: Future[Any]
    urgency: Urgency
    deadline: float | None


class _Lane:
    """What waits with one urgency: a queue for each owner, and the owners in turn."""

    def __init__(self) -> None:
        self._turns: OrderedDict[str, deque[_Job]] = OrderedDict()
        self.waiting = 0
        self.average_seconds = 0.0

    def put(self, owner: str, job: _Job) -> None:
        self._turns.setdefault(owner, deque()).append(job)
        self.waiting += 1

    def take(self) -> _Job:
        owner, jobs = self._turns.popitem(last=False)
        job = jobs.popleft()
        self.waiting -= 1
        if jobs:
            self._turns[owner] = jobs  # at the end: the others come first
        return job

    def ahead_of(self, owner: str, jobs: int) -> int:
        """How many of the waiting jobs go before the last of so many new ones of this owner."""
        mine = len(self._turns.get(owner, ()))
        others = len(self._turns) - (1 if mine else 0)
        return mine + min(self.waiting - mine, (mine + jobs) * others)

    def learn(self, seconds: float) -> None:
        """One more duration for the moving average."""
        self.average_seconds += (seconds - self.average_seconds) * (_NEWEST_WEIGHT if self.average_seconds else 1)


class ModelPool:
    """Runs model calls. Made once by the composition root and closed at the end."""

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or _usable_cores()
        self._lanes = {urgency: _Lane() for urgency in Urgency}
        self._changed = threading.Condition()
        self._bulk_running = 0
        self._query_credit = 0.0  # seconds that queries may take before reranking has its turn
        self._asked_at = float("-inf")
        self._closed = False
        # Daemons, so that a model call that hangs can't keep the process from ending. `close` waits for the others.
        self._threads = [threading.Thread(target=self._serve, name=f"model-{number}", daemon=True) for number in range(self.workers)]
        for thread in self._threads:
            thread.start()

    def submit(self, work: Callable[[], Result], urgency: Urgency, deadline: float | None = None) -> Future[Result]:
        """Puts a call in line. A job that has not begun by `deadline` (of `time.monotonic`) never does: its future is cancelled.

        Raises:
            EncoderFailed: the pool is closed.
        """
        future: Future[Result] = Future()
        with self._changed:
            if self._closed:
                raise EncoderFailed("the models can't be asked", "the server is shutting down")
            self._lanes[urgency].put(_owner.get(), _Job(work, future, urgency, deadline))
            if urgency is not Urgency.BULK:
                self._asked_at = time.monotonic()
            self._changed.notify()
        return future

    def expected_seconds(self, urgency: Urgency, jobs: int) -> float:
        """How long so many new jobs would take to the end of the last, by what such jobs took lately; 0 while none waits.

        A guess, for not beginning what can't be finished. It is 0 in front of an empty lane, so that one slow moment, which
        the average would remember, can't turn everyone away for good.
        """
        with self._changed:
            lane = self._lanes[urgency]
            if not lane.waiting:
                return 0.0
            own = (lane.ahead_of(_owner.get(), jobs) + jobs) * lane.average_seconds
            before = sum(other.waiting * other.average_seconds for earlier, other in self._lanes.items() if earlier < urgency)
            return (own + (min(before, QUERY_SHARE * own) if urgency is Urgency.RERANK else before)) / self.workers

    def close(self, wait: bool = True) -> None:
        """Ends the workers after the jobs they are at; what waits is cancelled. May be called twice."""
        with self._changed:
            self._closed = True
            for lane in self._lanes.values():
                while lane.waiting:
                    lane.take().future.cancel()
            self._changed.notify_all()
        for thread in self._threads if wait else ():
            thread.join(SHUTDOWN_SECONDS)
            if thread.is_alive():
                logger.warning("a model call is still running after %d s; the process ends without it", SHUTDOWN_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _serve(self) -> None:
        while job := self._next():
            if job.deadline is not None and time.monotonic() >= job.deadline:
                job.future.cancel()
            if job.future.set_running_or_notify_cancel():
                self._run(job)
            with self._changed:
                if job.urgency is Urgency.BULK:
                    self._bulk_running -= 1
                    self._changed.notify()

    def _run(self, job: _Job) -> None:
        began = time.monotonic()
        try:
            result = job.work()
        except BaseException as error:  # noqa: BLE001  the top of a worker: whoever asked gets it
            job.future.set_exception(error)
        else:
            job.future.set_result(result)
            with self._changed:
                self._lanes[job.urgency].learn(time.monotonic() - began)

    def _next(self) -> _Job | None:
        """The next job, once there is one; None once the pool is closed."""
        with self._changed:
            while not self._closed:
                urgency = self._most_urgent()
                if urgency is not None:
                    if urgency is Urgency.BULK:
                        self._bulk_running += 1
                    return self._lanes[urgency].take()
                # With bulk work held back, a worker looks again when the last question is long enough ago.
                self._changed.wait(ASKED_LATELY_SECONDS if self._lanes[Urgency.BULK].waiting else None)
            return None

    def _most_urgent(self) -> Urgency | None:
        query, rerank, bulk = (self._lanes[urgency] for urgency in Urgency)
        if query.waiting and rerank.waiting:
            if self._query_credit >= 0:
                self._query_credit -= query.average_seconds
                return Urgency.QUERY
            self._query_credit += QUERY_SHARE * rerank.average_seconds
            return Urgency.RERANK
        self._query_credit = 0.0  # no contest, no debts
        if query.waiting or rerank.waiting:
            return Urgency.QUERY if query.waiting else Urgency.RERANK
        return Urgency.BULK if bulk.waiting and self._bulk_may_begin() else None

    def _bulk_may_begin(self) -> bool:
        asked_lately = time.monotonic() - self._asked_at < ASKED_LATELY_SECONDS
        return self._bulk_running < max(1, self.workers - 1 if asked_lately else self.workers)


def _usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):  # Linux: what a container or taskset leaves us
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
