"""How a cross-encoder is asked: in chunks, within a deadline, and not twice."""

import threading
import time
from collections.abc import Callable, Iterator

import pytest
from panics import Panicked

from memory_mcp.encoders.cache import Caches
from memory_mcp.encoders.reranking import BATCH_PAIRS, Pair, PooledReranker
from memory_mcp.encoders.scheduler import RECENT_SECONDS, Urgency
from memory_mcp.encoders.worker_pool import ModelPool
from memory_mcp.errors import EncoderFailed

AN_HOUR = 3_600


class Judge:
    """Scores by length, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[list[Pair]] = []
        self.error: BaseException | None = None
        self.score: float | None = None
        self.gate: threading.Event | None = None
        self.begun = threading.Event()

    def __call__(self, pairs: list[Pair]) -> list[float]:
        self.asked.append(pairs)
        self.begun.set()
        if self.gate:
            self.gate.wait()
        if self.error:
            raise self.error
        return [len(text) / 100 if self.score is None else self.score for _, text in pairs]


@pytest.fixture
def pool() -> Iterator[ModelPool]:
    with ModelPool(1) as pool:
        yield pool


@pytest.fixture
def judge() -> Judge:
    return Judge()


@pytest.fixture
def reranker(judge: Judge, pool: ModelPool) -> PooledReranker:
    return PooledReranker(judge, "judge", pool, Caches())


def texts(count: int) -> list[str]:
    return ["x" * (number * 7 % 90 + 1) + str(number) for number in range(count)]


def test_scores_are_in_the_order_of_the_texts_whatever_the_chunks(reranker: PooledReranker):
    asked = texts(11)
    assert reranker.score("q", asked) == [len(text) / 100 for text in asked]


def test_chunks_hold_texts_of_like_length(reranker: PooledReranker, judge: Judge):
    reranker.score("q", texts(11))
    assert [len(batch) for batch in judge.asked] == [BATCH_PAIRS, BATCH_PAIRS, 3]
    lengths = [len(text) for batch in judge.asked for _, text in batch]
    assert lengths == sorted(lengths, reverse=True)


class OneByOne(ModelPool):
    """Says that it has so many workers, and has one, so that the order of what it is asked is known."""

    def __init__(self, workers: int) -> None:
        super().__init__(1)
        self.workers = workers


@pytest.mark.parametrize(
    ("workers", "pairs", "chunks"),
    [
        (1, 11, [4, 4, 3]),
        (2, 1, [1]),
        (2, 5, [3, 2]),
        (2, 9, [3, 2, 2, 2]),
        (2, 12, [3, 3, 3, 3]),
        (2, 15, [4, 4, 4, 3]),
        (3, 15, [3, 3, 3, 2, 2, 2]),
        (8, 5, [2, 2, 1]),
        (8, 15, [2, 2, 2, 2, 2, 2, 2, 1]),
    ],
)
def test_all_workers_get_as_much(judge: Judge, workers: int, pairs: int, chunks: list[int]):
    with OneByOne(workers) as pool:
        PooledReranker(judge, "judge", pool, Caches()).score("q", texts(pairs))
    assert [len(batch) for batch in judge.asked] == chunks


def batches_of_second(judge: Judge, pool: ModelPool, counts: tuple[int, int], is_asked: Callable[[], bool], eventually) -> list[int]:
    """The sizes of the batches of a call that comes while another one is read, whose batches end once `is_asked`."""
    judge.gate = threading.Event()
    reranker = PooledReranker(judge, "judge", pool, Caches())
    threads = [
        threading.Thread(target=reranker.score, args=(query, texts(count)))
        for query, count in zip(("first", "second"), counts, strict=True)
    ]
    threads[0].start()
    judge.begun.wait()
    threads[1].start()
    eventually(is_asked)
    judge.gate.set()
    for thread in threads:
        thread.join()
    return [len(batch) for batch in judge.asked if batch[0][0] == "second"]


def test_where_others_wait_there_are_as_few_chunks_as_can_be(judge: Judge, eventually):
    with OneByOne(8) as pool:
        assert batches_of_second(judge, pool, (3, 15), lambda: pool._queues[Urgency.RERANK].waiting > 1, eventually) == [8, 7]


def test_what_is_shown_is_one_chunk_where_one_worker_is_left(judge: Judge, eventually):
    with ModelPool(2) as pool:
        assert batches_of_second(judge, pool, (2, 5), lambda: len(judge.asked) > 1, eventually) == [5]


def test_long_texts_are_not_shared_out_further_than_they_have_to_be(judge: Judge):
    with OneByOne(2) as pool:
        PooledReranker(judge, "judge", pool, Caches()).score("q", ["x" * (900 + number) for number in range(12)])
    assert [len(batch) for batch in judge.asked] == [2] * 6


def test_one_pair_is_asked_once(reranker: PooledReranker, judge: Judge):
    first = reranker.score("q", ["a", "b"])
    assert reranker.score("q", ["b", "a"]) == first[::-1] if first else False
    assert reranker.score("other", ["a"])
    assert [pair for batch in judge.asked for pair in batch] == [("q", "a"), ("q", "b"), ("other", "a")]


def test_another_model_under_the_same_name_is_asked_anew(judge: Judge, pool: ModelPool):
    caches = Caches()
    for fingerprint in ("one", "other"):
        PooledReranker(judge, "judge", pool, caches, fingerprint=fingerprint).score("q", ["a"])
    assert len(judge.asked) == 2


def test_what_is_known_needs_no_time(reranker: PooledReranker):
    scores = reranker.score("q", ["a"])
    assert reranker.score("q", ["a"], deadline=time.monotonic() - 1) == scores


def test_what_can_not_be_done_in_time_is_none_and_the_rest_is_not_begun(reranker: PooledReranker, judge: Judge, pool: ModelPool):
    judge.gate = threading.Event()
    while not judge.begun.is_set():
        assert reranker.score("q", texts(BATCH_PAIRS * 3), deadline=time.monotonic() + 0.05) is None
    judge.gate.set()
    pool.submit(lambda: None, Urgency.BULK).result()  # goes last, so the line is empty now
    assert len(judge.asked) == 1


def test_what_came_too_late_is_known_the_next_time(reranker: PooledReranker, judge: Judge, pool: ModelPool):
    judge.gate = threading.Event()
    while not judge.begun.is_set():
        assert reranker.score("q", ["a"], deadline=time.monotonic() + 0.02) is None
    judge.gate.set()
    pool.submit(lambda: None, Urgency.BULK).result()
    assert reranker.score("q", ["a"], deadline=time.monotonic() - 1) == [0.01]


def test_nothing_is_begun_where_the_line_is_too_long(reranker: PooledReranker, judge: Judge, pool: ModelPool):
    busy = threading.Event()
    pool.submit(lambda: threading.Event().wait(0.01), Urgency.RERANK).result()  # what such a job takes
    jobs = [pool.submit(busy.wait, Urgency.RERANK) for _ in range(50)]
    assert reranker.score("q", ["a"], deadline=time.monotonic() + 0.2) is None
    busy.set()
    for job in jobs:
        job.result()
    assert not judge.asked


def test_short_of_time_the_first_texts_are_scored(reranker: PooledReranker, pool: ModelPool):
    batch = sum(len(text) for text in texts(60)) / 60 * BATCH_PAIRS / 5_000
    pool.submit(lambda: threading.Event().wait(0.1), Urgency.RERANK, weight=batch).result()  # what is expected: 500 seconds for four texts
    gate, begun = threading.Event(), threading.Event()
    pool.submit(lambda: (begun.set(), gate.wait()), Urgency.RERANK, weight=batch)
    begun.wait()
    pool.submit(lambda: None, Urgency.RERANK, weight=batch)
    threading.Timer(0.02, gate.set).start()
    scores = reranker.score("q", texts(60), deadline=time.monotonic() + AN_HOUR, at_least=BATCH_PAIRS)
    assert scores is not None
    assert BATCH_PAIRS <= len(scores) < 60
    assert scores == [len(text) / 100 for text in texts(60)[: len(scores)]]


def test_after_a_slow_moment_somebody_tries_again(reranker: PooledReranker, pool: ModelPool):
    pool.submit(lambda: threading.Event().wait(0.1), Urgency.RERANK, weight=1e-6).result()  # more than a day, it seems, for a text
    assert reranker.score("q", ["a"], deadline=time.monotonic() + AN_HOUR) is None
    pool._queues[Urgency.RERANK]._measured_at -= RECENT_SECONDS
    assert reranker.score("q", ["a"], deadline=time.monotonic() + AN_HOUR) == [0.01]


def test_who_is_first_needs_no_room_for_error(reranker: PooledReranker, pool: ModelPool):
    pool._queues[Urgency.RERANK].record(1, AN_HOUR * 0.9, time.monotonic(), 2)
    assert reranker.score("q", ["a"], deadline=time.monotonic() + AN_HOUR) == [0.01]


def test_a_far_deadline_changes_nothing(reranker: PooledReranker):
    assert reranker.score("q", ["a"], deadline=time.monotonic() + AN_HOUR) == [0.01]


def test_a_failure_says_which_model_and_why(reranker: PooledReranker, judge: Judge):
    judge.error = RuntimeError("CUDA out of memory")
    with pytest.raises(EncoderFailed, match="judge failed: RuntimeError: CUDA out of memory"):
        reranker.score("q", texts(9))


def test_a_model_whose_library_breaks_off_is_a_failure_like_any_other(reranker: PooledReranker, judge: Judge):
    judge.error = Panicked("byte index 3 is not a char boundary")
    with pytest.raises(EncoderFailed, match="judge failed: Panicked"):
        reranker.score("q", texts(9))
    judge.error = None
    assert reranker.score("q", texts(9))


def test_why_it_fails_is_in_the_log_once(reranker: PooledReranker, judge: Judge, caplog: pytest.LogCaptureFixture):
    judge.error = RuntimeError("CUDA out of memory")
    for _ in range(3):
        with pytest.raises(EncoderFailed):
            reranker.score("q", texts(9))
    assert [record.getMessage() for record in caplog.records] == ["judge failed: RuntimeError: CUDA out of memory"]


def test_numbers_that_are_none_are_a_failure(reranker: PooledReranker, judge: Judge, caplog: pytest.LogCaptureFixture):
    judge.score = float("nan")
    with pytest.raises(EncoderFailed, match="NaN or infinity"):
        reranker.score("q", ["a"])
    assert "judge returned NaN or infinity" in caplog.text


def test_a_text_far_beyond_the_limit_is_not_sent_whole(judge: Judge, pool: ModelPool):
    PooledReranker(judge, "judge", pool, Caches(), max_tokens=10).score("q" * 1_000, ["a" * 1_000])
    assert judge.asked == [[("q" * 80, "a" * 80)]]


def at_once(calls: list, judge: Judge) -> tuple[list[threading.Thread], list]:
    """What calls get that begin while the judge reads for the first of them."""
    judge.gate = threading.Event()
    answers: list = [None] * len(calls)
    waiting = threading.Semaphore(0)

    def call(number: int) -> None:
        waiting.release()
        answers[number] = calls[number]()

    threads = [threading.Thread(target=call, args=(number,)) for number in range(len(calls))]
    threads[0].start()
    judge.begun.wait()
    for thread in threads[1:]:
        thread.start()
    for _ in threads:
        waiting.acquire()
    return threads, answers


def test_calls_that_ask_the_same_at_once_share_the_work(reranker: PooledReranker, judge: Judge, eventually):
    asked = texts(6)
    threads, answers = at_once([lambda: reranker.score("q", asked) for _ in range(5)], judge)
    eventually(lambda: all(job.waiting == 5 for job in reranker._under_way.values()))
    judge.gate.set()
    for thread in threads:
        thread.join()
    assert all(answer == answers[0] for answer in answers)
    assert sorted(text for batch in judge.asked for _, text in batch) == sorted(asked)
    assert not reranker._under_way


def test_who_waits_longer_gets_the_work_that_another_gave_up(reranker: PooledReranker, judge: Judge):
    asked = texts(3)
    calls = [
        lambda: reranker.score("busy", ["x"]),
        lambda: reranker.score("q", asked, time.monotonic() + 0.3),
        lambda: reranker.score("q", asked),
    ]
    threads, answers = at_once(calls, judge)
    threads[1].join()
    judge.gate.set()
    for thread in threads:
        thread.join()
    assert answers == [[0.01], None, [len(text) / 100 for text in asked]]
    assert not reranker._under_way


def test_what_would_end_too_late_is_asked_for_once(
    reranker: PooledReranker, judge: Judge, pool: ModelPool, monkeypatch: pytest.MonkeyPatch
):
    pool._queues[Urgency.RERANK].record(1, 2 * AN_HOUR, time.monotonic(), 2)
    asked: list[Urgency] = []
    submit = pool.submit

    def counted(work, urgency, *more):
        asked.append(urgency)
        return submit(work, urgency, *more)

    monkeypatch.setattr(pool, "submit", counted)
    assert reranker.score("q", ["a"], deadline=time.monotonic() + AN_HOUR) is None
    assert (asked, judge.asked) == ([Urgency.RERANK], [])


@pytest.mark.slow
def test_what_is_shown_counts_where_the_rest_comes_too_late(judge: Judge):
    class Slowing(Judge):
        def __call__(self, pairs: list[Pair]) -> list[float]:
            if self.asked:
                begun.set()
                stuck.wait()
            return super().__call__(pairs)

    stuck, begun = threading.Event(), threading.Event()
    with ModelPool(1) as pool:
        pool._queues[Urgency.RERANK].record(1, 0.1, 1.0, 20.0)  # pairs took long of late
        asked = ["short", "ab", *("x" * (50 + number) for number in range(4))]
        scores = PooledReranker(Slowing(), "judge", pool, Caches()).score("q", asked, time.monotonic() + 2, at_least=2)
        stuck.set()
    assert begun.is_set()
    assert scores == [0.05, 0.02]


def test_a_failure_is_one_for_all_who_wait_and_for_nobody_later(reranker: PooledReranker, judge: Judge, eventually):
    failed: list[EncoderFailed] = []

    def failing() -> None:
        with pytest.raises(EncoderFailed) as failure:
            reranker.score("q", ["x"])
        failed.append(failure.value)

    judge.error = RuntimeError("no memory left on the device")
    threads, _ = at_once([failing, failing], judge)
    eventually(lambda: all(job.waiting == 2 for job in reranker._under_way.values()))
    judge.gate.set()
    for thread in threads:
        thread.join()
    judge.error = None
    assert len(failed) == 2
    assert reranker.score("q", ["x"]) == [0.01]
