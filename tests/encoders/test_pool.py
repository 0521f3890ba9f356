"""The order in which model calls are made, deadlines, and the end."""

import contextlib
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future, wait

import pytest

from memory_mcp.encoders.scheduler import RECENT_SECONDS, JobQueue, Urgency
from memory_mcp.encoders.worker_pool import GPU_WORKERS, MAX_JOBS_PER_CALL, ModelPool, on_behalf_of
from memory_mcp.errors import EncoderFailed

PAST = float("-inf")
AN_HOUR = 3_600.0


class Line:
    """A pool of one worker that is busy until `go`, so that what is submitted meanwhile stands in line."""

    def __init__(self, pool: ModelPool) -> None:
        self.pool = pool
        self.done: list[str] = []
        self.futures: list[Future[None]] = []
        self._gate = threading.Event()
        begun = threading.Event()
        pool.submit(lambda: (begun.set(), self._gate.wait()), Urgency.QUERY)
        begun.wait()

    def add(self, name: str, urgency: Urgency, deadline: float | None = None) -> Future[None]:
        self.futures.append(self.pool.submit(lambda: self.done.append(name), urgency, deadline))
        return self.futures[-1]

    def go(self) -> list[str]:
        self._gate.set()
        for future in self.futures:
            with contextlib.suppress(CancelledError):
                future.result()
        return self.done


@pytest.fixture
def line() -> Iterator[Line]:
    with ModelPool(1) as pool:
        waiting = Line(pool)
        yield waiting
        waiting.go()


def test_reranking_goes_on_before_a_query_that_came_just_now_and_both_before_bulk_work(line: Line, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("memory_mcp.encoders.worker_pool.QUERY_MAX_WAIT_SECONDS", AN_HOUR)
    line.add("bulk", Urgency.BULK)
    line.add("query", Urgency.QUERY)
    line.add("rerank", Urgency.RERANK)
    assert line.go() == ["rerank", "query", "bulk"]


def test_a_query_that_has_waited_goes_before_reranking(line: Line, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("memory_mcp.encoders.worker_pool.QUERY_MAX_WAIT_SECONDS", 0.0)
    line.add("rerank", Urgency.RERANK)
    line.add("query", Urgency.QUERY)
    assert line.go() == ["query", "rerank"]


def test_items_of_one_work_that_wait_behind_each_other_are_done_in_one_call(line: Line):
    calls: list[list[int]] = []

    def double(items: list[int]) -> list[int]:
        calls.append(items)
        return [item * 2 for item in items]

    futures = [line.pool.submit_item(double, number, Urgency.QUERY) for number in range(MAX_JOBS_PER_CALL + 2)]
    line.go()
    assert [future.result() for future in futures] == [number * 2 for number in range(MAX_JOBS_PER_CALL + 2)]
    assert [len(items) for items in calls] == [MAX_JOBS_PER_CALL, 2]


def test_an_error_in_one_call_reaches_everyone_whose_item_was_in_it(line: Line):
    futures = [line.pool.submit_item(lambda items: [1 // 0 for _ in items], None, Urgency.QUERY) for _ in range(2)]
    line.go()
    for future in futures:
        with pytest.raises(ZeroDivisionError):
            future.result()


def test_within_an_urgency_the_first_comes_first(line: Line):
    for name in ("a", "b", "c"):
        line.add(name, Urgency.BULK)
    assert line.go() == ["a", "b", "c"]


def test_owners_take_turns_so_that_one_with_many_jobs_delays_another_by_one(line: Line):
    with on_behalf_of("nilou"):
        for number in range(3):
            line.add(f"nilou {number}", Urgency.BULK)
    with on_behalf_of("furina"):
        line.add("furina", Urgency.BULK)
    assert line.go() == ["nilou 0", "furina", "nilou 1", "nilou 2"]


def test_a_job_that_would_end_too_late_is_not_begun_where_others_wait(line: Line):
    line.pool._queues[Urgency.RERANK].record(1, 2 * AN_HOUR, time.monotonic() - RECENT_SECONDS, 1.0)
    late = line.add("late", Urgency.RERANK, deadline=time.monotonic() + AN_HOUR)
    line.add("the only one", Urgency.RERANK, deadline=time.monotonic() + AN_HOUR)
    assert line.go() == ["the only one"]
    assert late.cancelled()


def test_a_job_that_would_end_too_late_as_was_measured_just_now_is_not_begun(line: Line):
    line.pool._queues[Urgency.RERANK].record(1, 2 * AN_HOUR, time.monotonic(), 1.0)
    late = line.add("late", Urgency.RERANK, deadline=time.monotonic() + AN_HOUR)
    line.add("in time", Urgency.RERANK, deadline=time.monotonic() + 3 * AN_HOUR)
    assert line.go() == ["in time"]
    assert late.cancelled()


def test_a_job_whose_deadline_has_passed_is_not_begun(line: Line):
    late = line.add("late", Urgency.RERANK, deadline=PAST)
    line.add("in time", Urgency.RERANK, deadline=time.monotonic() + 3600)
    assert line.go() == ["in time"]
    assert late.cancelled()


def test_a_cancelled_job_is_not_begun(line: Line):
    line.add("unwanted", Urgency.BULK).cancel()
    line.add("wanted", Urgency.BULK)
    assert line.go() == ["wanted"]


def test_whoever_asked_gets_the_error_and_the_worker_goes_on():
    with ModelPool(1) as pool:
        broken = pool.submit(lambda: 1 // 0, Urgency.QUERY)
        assert pool.submit(lambda: "well", Urgency.QUERY).result() == "well"
        with pytest.raises(ZeroDivisionError):
            broken.result()


def test_bulk_work_leaves_a_worker_free_while_somebody_asks():
    with ModelPool(2) as pool:
        pool.submit(lambda: None, Urgency.QUERY).result()
        gate, begun = threading.Event(), threading.Semaphore(0)

        def bulk() -> None:
            begun.release()
            gate.wait()

        jobs = [pool.submit(bulk, Urgency.BULK) for _ in range(2)]
        begun.acquire()
        assert pool.submit(lambda: "answered", Urgency.QUERY).result() == "answered"
        gate.set()
        for job in jobs:
            job.result()


def test_bulk_work_takes_every_worker_when_nobody_asks():
    with ModelPool(2) as pool:
        both_at_once = threading.Barrier(2)
        jobs = [pool.submit(both_at_once.wait, Urgency.BULK) for _ in range(2)]
        assert sorted(job.result() for job in jobs) == [0, 1]


def test_a_job_would_be_the_next_one_while_nothing_of_its_urgency_waits(line: Line):
    line.add("query", Urgency.QUERY)
    assert line.pool.queue_is_empty(Urgency.RERANK)
    line.add("rerank", Urgency.RERANK)
    assert not line.pool.queue_is_empty(Urgency.RERANK)


def test_the_time_expected_grows_with_what_waits(eventually: Callable[[Callable[[], bool]], None]):
    with ModelPool(1) as pool:
        pool.submit(lambda: threading.Event().wait(0.002), Urgency.RERANK).result()
        line = Line(pool)
        line.add("one", Urgency.RERANK)
        one = pool.expected_seconds(Urgency.RERANK, [1])
        line.add("two", Urgency.RERANK)
        assert 0 < one < pool.expected_seconds(Urgency.RERANK, [1])
        line.go()


def test_whoever_has_a_result_finds_it_in_the_pace(monkeypatch: pytest.MonkeyPatch):
    recorded = []

    def slowly(*_: object) -> None:
        threading.Event().wait(0.1)
        recorded.append(True)

    monkeypatch.setattr(JobQueue, "record", slowly)
    with ModelPool(1) as pool:
        pool.submit(lambda: None, Urgency.RERANK).result()
        assert recorded


def test_a_model_that_answers_for_fewer_items_fails_and_the_next_call_is_answered():
    with ModelPool(1) as pool:
        with pytest.raises(ValueError, match="shorter"):
            pool.submit_item(lambda _: [], "item", Urgency.QUERY).result(60)
        assert pool.submit(lambda: "here", Urgency.QUERY).result(60) == "here"


def test_lighter_jobs_are_expected_to_take_less():
    with ModelPool(1) as pool:
        pool.submit(lambda: threading.Event().wait(0.002), Urgency.RERANK, weight=100).result()
        usual = pool.expected_seconds(Urgency.RERANK, [100])
        assert pool.expected_seconds(Urgency.RERANK, [20, 20]) < usual < pool.expected_seconds(Urgency.RERANK, [300])


def test_the_workers_that_run_no_such_job_are_free_for_it_while_none_waits():
    running, enough = threading.Event(), threading.Event()
    with ModelPool(1) as pool:
        assert pool.free_workers(Urgency.RERANK) == 1
        job = pool.submit(lambda: (running.set(), enough.wait()), Urgency.RERANK)
        running.wait()
        assert (pool.free_workers(Urgency.RERANK), pool.free_workers(Urgency.QUERY)) == (0, 1)
        enough.set()
        job.result()


def test_an_owner_expects_to_wait_for_its_turns_not_for_all_of_the_others_jobs():
    with ModelPool(1) as pool:
        pool.submit(lambda: threading.Event().wait(0.002), Urgency.RERANK).result()
        line = Line(pool)
        with on_behalf_of("nilou"):
            for _ in range(100):
                line.add("nilou", Urgency.RERANK)
            crowded = pool.expected_seconds(Urgency.RERANK, [1])
        with on_behalf_of("furina"):
            assert pool.expected_seconds(Urgency.RERANK, [1]) < crowded / 10
        line.go()


def test_closing_ends_the_threads_and_cancels_what_waits():
    before = set(threading.enumerate())
    pool = ModelPool(1)
    gate, begun = threading.Event(), threading.Event()
    running = pool.submit(lambda: (begun.set(), gate.wait()), Urgency.QUERY)
    waiting = pool.submit(lambda: None, Urgency.BULK)
    begun.wait()
    pool.close(wait=False)
    gate.set()
    pool.close()
    assert waiting.cancelled()
    assert running.done()
    assert set(threading.enumerate()) <= before
    with pytest.raises(EncoderFailed):
        pool.submit(lambda: None, Urgency.QUERY)


def test_bulk_work_rests_while_somebody_asks_and_not_when_nobody_does(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("memory_mcp.encoders.worker_pool.RECENT_CALL_SECONDS", AN_HOUR)
    with ModelPool(1, bulk_share=1e-9) as pool:
        pool.submit(lambda: None, Urgency.QUERY).result()
        first, second = (pool.submit(lambda: threading.Event().wait(0.001), Urgency.BULK) for _ in range(2))
        first.result()
        assert not wait([second], 0.05).done
        monkeypatch.setattr("memory_mcp.encoders.worker_pool.RECENT_CALL_SECONDS", 0.0)
        pool.submit(lambda: None, Urgency.QUERY).result()
        second.result()


def test_models_on_a_gpu_share_a_few_workers_that_end_with_the_others():
    with ModelPool(64) as pool:
        on_gpu = pool.for_gpu()
        assert on_gpu is pool.for_gpu()
        assert on_gpu.workers == GPU_WORKERS
        assert on_gpu.submit(lambda: 7, Urgency.QUERY).result() == 7
    with pytest.raises(EncoderFailed, match="shutting down"):
        on_gpu.submit(lambda: 7, Urgency.QUERY)


def test_an_idle_worker_keeps_nothing_of_its_last_job(eventually: Callable[[Callable[[], bool]], None]):
    class Model:
        def call(self) -> int:
            return 7

    model = Model()
    alive = weakref.ref(model)
    with ModelPool(1) as pool:
        assert pool.submit(model.call, Urgency.QUERY).result() == 7
        del model
        eventually(lambda: alive() is None)
