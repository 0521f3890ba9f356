"""The model workers: one thread for each core, shared by everyone. What is urgent goes first, and owners take turns.

One model call on one thread, several side by side, beats one call on all threads: two threads that wait for each other by
spinning made 9 ms into 1,500 on a busy machine, and chunks of at most 4 pairs on two workers halve the time of one large batch.

Fairness has two halves. Within an urgency, the owners that have something waiting take turns, job by job, so a persona with
hundreds of jobs delays another by one job. And while somebody is asking, bulk work leaves a worker free, because a job that
has begun can't be interrupted, and rests after each job, because the cores are as many as the workers.

Whoever is being reranked has waited longest, so reranking goes on until a query has waited `QUERY_PATIENCE_SECONDS`. Queries
that wait are then embedded together: eight of them in one call cost a third of eight calls, because most of a short text's
time goes into reading the model's weights.
"""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Self, TypeVar

from memory_mcp.encoders.scheduler import Job, Lane, Urgency
from memory_mcp.errors import EncoderFailed

Item = TypeVar("Item")
Result = TypeVar("Result")

ASKED_LATELY_SECONDS = 1.0
BULK_SHARE = 0.25  # of a worker's time, while somebody is asking
QUERY_PATIENCE_SECONDS = 0.05
TOGETHER = 8  # jobs in one call, where they may be
SHUTDOWN_SECONDS = 10.0

logger = logging.getLogger(__name__)

_owner: ContextVar[str] = ContextVar("owner", default="")


@contextmanager
def on_behalf_of(owner: str) -> Iterator[None]:
    """Whose turn the jobs count as that this thread submits inside, such as a persona's name. Outside all share one turn."""
    token = _owner.set(owner)
    try:
        yield
    finally:
        _owner.reset(token)


class ModelPool:
    """Runs model calls. Made once by the composition root and closed at the end."""

    def __init__(self, workers: int | None = None, bulk_share: float = BULK_SHARE) -> None:
        """`bulk_share` is for work that needs a core; what waits for others may have 1."""
        self._rest = 1 / bulk_share - 1  # after each second of bulk work
        self._bulk_rests_until = float("-inf")
        self.workers = workers or _usable_cores()
        self._lanes = {urgency: Lane() for urgency in Urgency}
        self._changed = threading.Condition()
        self._bulk_running = 0
        self._asked_at = float("-inf")
        self._closed = False
        # Daemons, so that a model call that hangs can't keep the process from ending. `close` waits for the others.
        self._threads = [threading.Thread(target=self._serve, name=f"model-{number}", daemon=True) for number in range(self.workers)]
        for thread in self._threads:
            thread.start()

    def submit(self, work: Callable[[], Result], urgency: Urgency, deadline: float | None = None, weight: float = 1.0) -> Future[Result]:
        """Puts a call in line. `weight` is about proportional to the time it takes. A job that has not begun by `deadline` (of `time.monotonic`) never does: its future is cancelled.

        Raises:
            EncoderFailed: the pool is closed.
        """
        return self._put(Job(lambda _: [work()], None, Future(), urgency, deadline, weight))

    def submit_item(self, work: Callable[[list[Item]], Sequence[Result]], item: Item, urgency: Urgency) -> Future[Result]:
        """The same for one item of a work that can do several in one call. Items that wait behind each other are put together.

        Raises:
            EncoderFailed: the pool is closed.
        """
        return self._put(Job(work, item, Future(), urgency, None))

    def expected_seconds(self, urgency: Urgency, weights: Sequence[float]) -> float:
        """How long new jobs of such weights would take to the end of the last, at the pace of late. A guess, for not beginning what
        can't be finished.
        """
        with self._changed:
            lane = self._lanes[urgency]
            pace = max(lane.pace_seconds, lane.average_seconds / self.workers)
            return (lane.ahead_of(_owner.get(), len(weights)) + lane.as_jobs(sum(weights))) * pace

    def nothing_waits(self, urgency: Urgency) -> bool:
        """Whether a new job would be the next one of this urgency."""
        with self._changed:
            return not self._lanes[urgency].waiting

    def close(self, wait: bool = True) -> None:
        """Ends the workers after the jobs they are at; what waits is cancelled. May be called twice."""
        with self._changed:
            self._closed = True
            for lane in self._lanes.values():
                while lane.waiting:
                    lane.take()[0].future.cancel()
            self._changed.notify_all()
        for thread in self._threads if wait else ():
            thread.join(SHUTDOWN_SECONDS)
            if thread.is_alive():
                logger.warning("a model call is still running after %d s; the process ends without it", SHUTDOWN_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _put(self, job: Job) -> Future[Any]:
        with self._changed:
            if self._closed:
                raise EncoderFailed("the models can't be asked", "the server is shutting down")
            self._lanes[job.urgency].put(_owner.get(), job)
            if job.urgency is not Urgency.BULK:
                self._asked_at = time.monotonic()
            self._changed.notify()
        return job.future

    def _serve(self) -> None:
        while jobs := self._next():
            now = time.monotonic()
            for job in jobs:
                if job.deadline is not None and now >= job.deadline:
                    job.future.cancel()
            begun = [job for job in jobs if job.future.set_running_or_notify_cancel()]
            if begun:
                self._run(begun)
            with self._changed:
                if jobs[0].urgency is Urgency.BULK:
                    self._bulk_running -= 1
                    ended = time.monotonic()
                    self._bulk_rests_until = ended + (ended - now) * self._rest
                    self._changed.notify()

    def _run(self, jobs: list[Job]) -> None:
        began = time.monotonic()
        try:
            results = jobs[0].work([job.item for job in jobs])
        except BaseException as error:  # noqa: BLE001  the top of a worker: whoever asked gets it
            for job in jobs:
                job.future.set_exception(error)
            return
        for job, result in zip(jobs, results, strict=True):
            job.future.set_result(result)
        ended = time.monotonic()
        with self._changed:
            self._lanes[jobs[0].urgency].learn(len(jobs), ended - began, ended, sum(job.weight for job in jobs))

    def _next(self) -> list[Job]:
        """The next jobs to be done in one call, once there are any; none once the pool is closed."""
        with self._changed:
            while not self._closed:
                urgency = self._most_urgent()
                if urgency is not None:
                    if urgency is Urgency.BULK:
                        self._bulk_running += 1
                    return self._lanes[urgency].take(TOGETHER)
                self._changed.wait(self._bulk_pause() if self._lanes[Urgency.BULK].waiting else None)
            return []

    def _most_urgent(self) -> Urgency | None:
        query, rerank, bulk = (self._lanes[urgency] for urgency in Urgency)
        if query.waiting and (not rerank.waiting or query.waited_seconds(time.monotonic()) >= QUERY_PATIENCE_SECONDS):
            return Urgency.QUERY
        if rerank.waiting:
            return Urgency.RERANK
        return Urgency.BULK if bulk.waiting and self._bulk_may_begin() else None

    def _bulk_may_begin(self) -> bool:
        now = time.monotonic()
        if now - self._asked_at >= ASKED_LATELY_SECONDS:
            return self._bulk_running < self.workers
        return self._bulk_running < max(1, self.workers - 1) and now >= self._bulk_rests_until

    def _bulk_pause(self) -> float:
        """When to look again at bulk work that is held back, in seconds: after its rest, or when nobody has asked for a while."""
        rest = self._bulk_rests_until - time.monotonic()
        return rest if 0 < rest < ASKED_LATELY_SECONDS else ASKED_LATELY_SECONDS


def _usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):  # Linux: what a container or taskset leaves us
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
