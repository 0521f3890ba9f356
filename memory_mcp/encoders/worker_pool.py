"""The model workers: one thread for each core, shared by all callers. Urgent jobs run first, and owners take turns.

One model call on one thread, several side by side, is faster than one call on all threads: two threads that waited for each other by
spinning turned 9 ms into 1,500 on a busy machine, and chunks of at most 4 pairs on two workers halve the time of one large batch.

Fairness has two parts. Within an urgency, the owners with waiting jobs take turns, job by job, so that a persona with hundreds of
jobs delays another by one job. And while calls come in, bulk work leaves one worker free, because a running job can't be
interrupted, and pauses after each job, because there are as many workers as cores.

A call that is being reranked has waited longest, so reranking goes first until a query has waited `QUERY_MAX_WAIT_SECONDS`. Waiting
queries are then embedded together: eight of them in one call cost a third of eight calls, because most of a short text's time
goes into reading the model's weights.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Self, TypeVar

from memory_mcp.encoders.scheduler import Job, JobQueue, Urgency
from memory_mcp.errors import EncoderFailed
from memory_mcp.process import usable_cores

Item = TypeVar("Item")
Result = TypeVar("Result")

RECENT_CALL_SECONDS = 1.0
BULK_SHARE = 0.25  # of a worker's time, while calls come in
QUERY_MAX_WAIT_SECONDS = 0.05
MAX_JOBS_PER_CALL = 8  # if the model takes several items in one call
GPU_WORKERS = 4  # one call of a GPU at a time is enough; the others make its texts into tokens
SHUTDOWN_SECONDS = 10.0

logger = logging.getLogger(__name__)

_owner: ContextVar[str] = ContextVar("owner", default="")


@contextmanager
def on_behalf_of(owner: str) -> Iterator[None]:
    """Sets the owner, such as a persona's name, of the jobs that this thread submits inside the block. Jobs without an owner share one turn."""
    token = _owner.set(owner)
    try:
        yield
    finally:
        _owner.reset(token)


class ModelPool:
    """Runs model calls. The composition root creates one and closes it at the end."""

    def __init__(self, workers: int | None = None, bulk_share: float = BULK_SHARE) -> None:
        """`bulk_share` limits work that needs a core; calls of a remote service can use 1."""
        self._pause_ratio = 1 / bulk_share - 1  # seconds of pause after each second of bulk work
        self._bulk_paused_until = float("-inf")
        self.workers = workers or usable_cores()
        self._queues = {urgency: JobQueue() for urgency in Urgency}
        self._changed = threading.Condition()
        self._running = dict.fromkeys(Urgency, 0)
        self._last_call_at = float("-inf")
        self._closed = False
        self._for_gpu: ModelPool | None = None
        # Daemons, so that a model call without an end can't keep the process from ending. `close` waits for the rest.
        self._threads = [threading.Thread(target=self._serve, name=f"model-{number}", daemon=True) for number in range(self.workers)]
        for thread in self._threads:
            thread.start()

    def submit(self, work: Callable[[], Result], urgency: Urgency, deadline: float | None = None, weight: float = 1.0) -> Future[Result]:
        """Queues a call. `weight` is roughly proportional to its duration. A job that has not started by `deadline` (of `time.monotonic`), or
        can't end by it as far as was measured a moment ago, is cancelled.

        Raises:
            EncoderFailed: the pool is closed.
        """
        return self._put(Job(lambda _: [work()], None, Future(), urgency, deadline, weight))

    def submit_item(self, work: Callable[[list[Item]], Sequence[Result]], item: Item, urgency: Urgency) -> Future[Result]:
        """Queues one item for work that takes several in one call: adjacent items of the same work share a call.

        Raises:
            EncoderFailed: the pool is closed.
        """
        return self._put(Job(work, item, Future(), urgency, None))

    def expected_seconds(self, urgency: Urgency, weights: Sequence[float]) -> float:
        """Estimates how long it takes until the last of new jobs with these weights ends, at the recent pace. Callers use it to avoid
        starting work that can't be finished in time.
        """
        with self._changed:
            queue = self._queues[urgency]
            pace = max(queue.pace_seconds, queue.average_seconds / self.workers)
            return (queue.ahead_of(_owner.get(), len(weights)) + queue.as_jobs(sum(weights))) * pace

    def queue_is_empty(self, urgency: Urgency) -> bool:
        """Whether no job of this urgency waits, so that a new one would be next."""
        with self._changed:
            return not self._queues[urgency].waiting

    def free_workers(self, urgency: Urgency) -> int:
        """How many workers run no job of this urgency; none are free while such a job waits."""
        with self._changed:
            return 0 if self._queues[urgency].waiting else self.workers - self._running[urgency]

    def for_gpu(self) -> "ModelPool":
        """The workers of all models on the GPU, fewer than there are cores, because they don't compute. They end with these."""
        with self._changed:
            if self._for_gpu is None:
                self._for_gpu = ModelPool(min(GPU_WORKERS, self.workers))
            return self._for_gpu

    def close(self, wait: bool = True) -> None:
        """Ends the workers after their current jobs; waiting jobs are cancelled. Can be called twice."""
        with self._changed:
            for_gpu = self._for_gpu
        if for_gpu:
            for_gpu.close(wait)
        with self._changed:
            self._closed = True
            for queue in self._queues.values():
                while queue.waiting:
                    queue.take()[0].future.cancel()
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
                raise EncoderFailed("the models can't be called", "the server is shutting down")
            self._queues[job.urgency].put(_owner.get(), job)
            if job.urgency is not Urgency.BULK:
                self._last_call_at = time.monotonic()
            self._changed.notify()
        return job.future

    def _serve(self) -> None:
        while self._serve_next():
            pass

    def _serve_next(self) -> bool:
        """One call, in a frame of its own: a worker that waits must not keep the last job, and with it a model that is no longer wanted.
        False once the pool is closed."""
        jobs = self._next()
        if not jobs:
            return False
        now = time.monotonic()
        for job in jobs:
            if job.deadline is not None and now + self._least_seconds(job) >= job.deadline:
                job.future.cancel()
        started = [job for job in jobs if job.future.set_running_or_notify_cancel()]
        if started:
            self._run(started)
        with self._changed:
            self._running[jobs[0].urgency] -= 1
            if jobs[0].urgency is Urgency.BULK:
                ended = time.monotonic()
                self._bulk_paused_until = ended + (ended - now) * self._pause_ratio
                self._changed.notify()
        return True

    def _least_seconds(self, job: Job) -> float:
        """How long a job is likely to take: one that ends too late would make others late for nothing."""
        with self._changed:
            queue = self._queues[job.urgency]
            return queue.average_seconds * queue.as_jobs(job.weight) if queue.waiting or queue.is_measured(time.monotonic()) else 0.0

    def _run(self, jobs: list[Job]) -> None:
        started = time.monotonic()
        try:
            done = list(zip(jobs, jobs[0].work([job.item for job in jobs]), strict=True))
        except BaseException as error:  # noqa: BLE001  the top of a worker: the caller gets the error
            for job in jobs:
                job.future.set_exception(error)
            return
        ended = time.monotonic()
        with self._changed:  # before anybody has a result: the next call reckons with this one's pace
            self._queues[jobs[0].urgency].record(len(jobs), ended - started, ended, sum(job.weight for job in jobs))
        for job, result in done:
            job.future.set_result(result)

    def _next(self) -> list[Job]:
        """Waits for jobs and returns those that the next call runs; empty once the pool is closed."""
        with self._changed:
            while not self._closed:
                urgency = self._most_urgent()
                if urgency is not None:
                    self._running[urgency] += 1
                    return self._queues[urgency].take(MAX_JOBS_PER_CALL)
                self._changed.wait(self._bulk_pause() if self._queues[Urgency.BULK].waiting else None)
            return []

    def _most_urgent(self) -> Urgency | None:
        query, rerank, bulk = (self._queues[urgency] for urgency in Urgency)
        if query.waiting and (not rerank.waiting or query.waited_seconds(time.monotonic()) >= QUERY_MAX_WAIT_SECONDS):
            return Urgency.QUERY
        if rerank.waiting:
            return Urgency.RERANK
        return Urgency.BULK if bulk.waiting and self._bulk_may_start() else None

    def _bulk_may_start(self) -> bool:
        now = time.monotonic()
        if now - self._last_call_at >= RECENT_CALL_SECONDS:
            return self._running[Urgency.BULK] < self.workers
        return self._running[Urgency.BULK] < max(1, self.workers - 1) and now >= self._bulk_paused_until

    def _bulk_pause(self) -> float:
        """Seconds until bulk work that is held back is checked again: after its pause, or when no call has come for a while."""
        pause = self._bulk_paused_until - time.monotonic()
        return pause if 0 < pause < RECENT_CALL_SECONDS else RECENT_CALL_SECONDS
