"""Whose import is next, and what imports may take: no caller keeps another from importing."""

import threading
from contextlib import ExitStack

import pytest

from memory_mcp.errors import Overloaded
from memory_mcp.server.import_jobs import ImportJobs, ImportLimits, InTurn


@pytest.fixture
def served(tmp_path):
    """served(**limits): imports of whom were begun, in order, and a way to let one go on."""
    opened = []

    def serve(**limits):
        queue = Queue(tmp_path, ImportLimits(**limits))
        opened.append(queue)
        return queue

    yield serve
    for queue in opened:
        queue.go_on()
        queue.jobs.close()


class Queue:
    def __init__(self, directory, limits):
        self.directory, self.jobs = directory, ImportJobs(limits)
        self.begun, self._gates, self._changed = [], {}, threading.Condition()

    def send(self, persona, token=None, size=0, name="a.jsonl"):
        with self.jobs.staged(self.directory, name, persona, token) as path:
            self.jobs.add_bytes(path, size)
            return self.jobs.start(path, persona, self._work, dry_run=False, token=token)

    def _work(self, job, _path):
        with self._changed:
            gate = self._gates.setdefault(job.id, threading.Event())
            self.begun.append((job.token, job.persona))
            self._changed.notify_all()
        assert gate.wait(60)

    def waits_for(self, count):
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.begun) >= count, 60)
        return self.begun

    def go_on(self, *jobs):
        """Lets these imports end, and waits until they have; without any, all that have begun or will."""
        for job in jobs or self.jobs._jobs.values():
            with self._changed:
                self._gates.setdefault(job.id, threading.Event()).set()
        for job in jobs:
            while not job.is_over:
                threading.Event().wait(0.001)


def test_one_import_of_a_caller_runs_and_those_of_others_beside_it(served):
    queue = served()
    many = [queue.send("nilou", "a") for _ in range(5)]
    one = queue.send("nilou", "b")
    assert sorted(queue.waits_for(2)) == [("a", "nilou"), ("b", "nilou")]
    queue.go_on(one)
    assert one.state == "done"
    assert [job.state for job in many[1:]] == ["waiting"] * 4


def test_a_small_file_does_not_wait_for_large_ones(served):
    queue = served(at_once=2, quick_at_once=2, quick_bytes=10)
    large = [queue.send("x", token, 11) for token in "abc"]
    queue.waits_for(2)
    packed = queue.send("x", "z", 1, "a.ZIP")
    small = [queue.send("x", token, 10) for token in "adefd"]
    assert queue.waits_for(4)[2:] == [("d", "x"), ("e", "x")]
    assert [job.state for job in (large[2], packed, small[0], *small[3:])] == ["waiting"] * 5  # one of a caller, and two in all
    queue.go_on(small[1])
    assert queue.waits_for(5)[4:] == [("f", "x")]
    queue.go_on(large[0])
    assert queue.waits_for(6)[5:] == [("c", "x")]  # whatever runs beside, large ones keep their places


def test_turns_go_round_among_callers_and_their_personas(served):
    queue = served(at_once=1, quick_at_once=0)
    jobs = [
        queue.send(persona, token)
        for persona, token in [("x", "a"), ("x", "a"), ("x", "a"), ("y", "a"), ("x", "b"), ("x", "c"), ("x", "b")]
    ]
    for count in range(1, 8):
        token, persona = queue.waits_for(count)[-1]
        queue.go_on(next(job for job in jobs if (job.token, job.persona) == (token, persona) and not job.is_over))
    assert queue.begun == [("a", "x"), ("b", "x"), ("c", "x"), ("a", "y"), ("b", "x"), ("a", "x"), ("a", "x")]


def test_a_caller_without_a_token_is_a_persona(served):
    queue = served()
    for persona in ("x", "x", "y"):
        queue.send(persona)
    assert sorted(queue.waits_for(2)) == [(None, "x"), (None, "y")]


def test_places_and_bytes_of_one_caller_are_bounded_and_others_go_on(served):
    queue = served(waiting=2, bytes_of_caller=100, bytes_in_all=150, small_bytes=10)
    for size in (90, 5, 5):
        queue.send("x", "a", size)
    with pytest.raises(Overloaded, match="too many imports are waiting: 2 are the limit"):
        queue.send("x", "a")
    with pytest.raises(Overloaded, match="take too much room: 100 bytes of one caller are the limit, 150 of all"):
        queue.send("x", "b", 101)
    queue.send("x", "b", 50)
    with pytest.raises(Overloaded, match="take too much room"):
        queue.send("x", "c", 11)
    small = queue.send("x", "c", 10)
    queue.waits_for(3)
    queue.go_on(small)
    assert small.state == "done"


def test_files_that_arrive_have_places_too(served):
    queue = served(waiting=2)
    with ExitStack() as arriving:
        for _ in range(5):
            arriving.enter_context(queue.jobs.staged(queue.directory, "a", "x", "a"))
        with pytest.raises(Overloaded, match="too many imports are waiting"):
            queue.send("x", "a")
        queue.send("x", "b")
    queue.send("x", "a")


def test_room_is_given_back_when_an_import_is_over_or_never_began(served):
    queue = served(bytes_of_caller=100)
    for _ in range(3):
        queue.go_on(queue.send("x", "a", 100))
        with queue.jobs.staged(queue.directory, "a", "x", "a") as path:
            queue.jobs.add_bytes(path, 100)
    assert not list((queue.directory / ".imports").iterdir())


def test_imports_of_one_caller_do_not_push_out_what_another_is_told(served):
    queue = served()
    mine = queue.send("x", "mine")
    queue.go_on(mine)
    for _ in range(40):
        queue.go_on(queue.send("x", "other"))
    jobs = queue.jobs.of_persona("x")
    assert mine in jobs
    assert len(jobs) < 40


def test_so_many_store_at_once_in_the_order_in_which_they_came():
    turn, entered, leave, order = InTurn(2), threading.Semaphore(0), threading.Semaphore(0), []

    def storing(number):
        with turn():
            order.append(number)
            entered.release()
            assert leave.acquire(timeout=60)

    threads = []
    for number in range(4):
        threads.append(threading.Thread(target=storing, args=(number,)))
        threads[-1].start()
        while len(turn._present) <= number:
            threading.Event().wait(0.001)
    for _ in range(2):
        assert entered.acquire(timeout=60)
    assert order == [0, 1]
    for _ in threads:
        leave.release()
    for thread in threads:
        thread.join(60)
    assert sorted(order[2:]) == [2, 3]
