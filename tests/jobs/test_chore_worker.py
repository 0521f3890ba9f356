"""The chores by their steps, with a clock that jumps: idle and overdue, turns, failures, requests. Once as a thread."""

import threading
import tracemalloc
from contextlib import contextmanager
from datetime import timedelta

import pytest

from memory_mcp.config.settings import Privacy, Settings
from memory_mcp.domain import Draft
from memory_mcp.errors import StoreError
from memory_mcp.jobs import chore_worker
from memory_mcp.jobs.chore_worker import OVERDUE_SECONDS, Chore, ChoreWorker
from memory_mcp.jobs.step_thread import POLL_SECONDS
from memory_mcp.remember.pipeline import remember_many

IDLE_SECONDS = 20
INTERVAL = timedelta(minutes=10)


class World:
    """A worker with one chore that writes down for whom it was called, and fails or has more to do where a test says so."""

    def __init__(self, personas, now, zone):
        self.personas, self.now, self.zone = personas, now, zone
        self.enabled, self.failing, self.pieces, self.retention = True, None, {}, {}
        self.failure = StoreError("the disk is full", "", "Make room")
        self.done = []
        self.worker = self.with_chore()

    def with_chore(self, **rules):
        """A worker as after a start, which has looked at nobody yet."""
        chore = Chore("tidy", self.piece, lambda settings: self.enabled, lambda settings: INTERVAL, **rules)
        return ChoreWorker(self.personas, [chore], self.settings, lambda: self.now)

    def settings(self):
        return Settings(embeddings_model=None, reranker_model=None, upkeep={"idle_seconds": IDLE_SECONDS}, retention=self.retention)

    def piece(self, persona, now, settings):
        if persona.name == self.failing:
            raise self.failure
        self.done.append(persona.name)
        self.pieces[persona.name] = self.pieces.get(persona.name, 1) - 1
        return self.pieces[persona.name] > 0

    def write(self, name, content="お茶が好き"):
        with self.personas.writing(name) as persona:
            remember_many(persona, [Draft(content)], now=self.now, zone=self.zone, privacy=Privacy())
        self.worker.wake(name)

    def later(self, seconds):
        self.now += timedelta(seconds=seconds)

    def work(self):
        """Steps until there is nothing left to do now. Returns for whom something was done, in order."""
        before = len(self.done)
        for _ in range(1_000):
            if self.worker.step(self.now):
                return self.done[before:]
        raise AssertionError("it never comes to an end")


@pytest.fixture
def world(personas, now, zone):
    made = World(personas, now, zone)
    yield made
    made.worker.stop()


def test_nothing_is_done_while_somebody_calls(world):
    world.write("mio")
    world.worker.note_call()
    world.later(IDLE_SECONDS - 1)
    assert world.work() == []
    world.later(1)
    assert world.work() == ["mio"]


def test_what_has_been_due_for_an_hour_is_done_although_somebody_calls(world):
    world.write("mio")
    world.worker.note_call()
    assert world.work() == []
    world.later(OVERDUE_SECONDS)
    world.worker.note_call()
    assert world.work() == ["mio"]


def test_a_persona_that_is_made_as_it_is_found_to_be_gone_has_its_turn(world, monkeypatch):
    reading = world.personas.reading

    @contextmanager
    def finding_none(name):
        with reading(name) as persona:
            if not persona.exists:
                monkeypatch.undo()
                world.write(name)
            yield persona

    monkeypatch.setattr(world.personas, "reading", finding_none)
    world.worker.wake("mio")
    world.later(IDLE_SECONDS)
    assert world.work() == ["mio"]


def test_each_persona_has_its_turn_however_much_another_has_to_do(world):
    for name in ("mio", "leo"):
        world.write(name)
    world.pieces = {"mio": 3}
    world.later(IDLE_SECONDS)
    assert world.work() == ["mio", "leo", "mio", "mio"]


def test_a_round_is_not_repeated_before_its_interval_is_over(world):
    world.write("mio")
    world.later(IDLE_SECONDS)
    assert world.worker.status()["tidy"].due == ("mio",)
    world.work()
    assert world.worker.status()["tidy"].due == ()
    world.later(INTERVAL.total_seconds() - 1)
    assert world.work() == []
    world.later(1)
    assert world.work() == ["mio"]


def test_a_chore_for_what_was_written_leaves_a_quiet_persona_alone(world):
    world.worker = world.with_chore(only_after_writes=True)
    world.write("mio")
    world.later(IDLE_SECONDS)
    assert world.work() == ["mio"]
    world.later(INTERVAL.total_seconds())
    assert world.work() == []
    world.write("mio", "紅茶も好き")
    world.later(IDLE_SECONDS)
    assert world.work() == ["mio"]


def test_what_is_written_while_a_round_is_under_way_gets_a_round_of_its_own(world):
    world.worker = world.with_chore(only_after_writes=True)
    world.write("mio")
    world.pieces = {"mio": 2}
    world.later(IDLE_SECONDS)
    world.worker.step(world.now)
    world.write("mio", "紅茶も好き")
    assert world.work() == ["mio"]
    world.later(INTERVAL.total_seconds())
    assert world.work() == ["mio"]


def test_a_request_waits_for_nothing(world):
    world.write("mio")
    world.later(IDLE_SECONDS)
    world.work()
    world.worker.note_call()
    world.worker.request("tidy", "mio")
    assert world.work() == ["mio"]
    assert world.work() == []


def test_a_failure_puts_that_persona_off_and_the_others_go_on(world):
    for name in ("mio", "leo"):
        world.write(name)
    world.failing = "mio"
    world.later(IDLE_SECONDS)
    assert world.work() == ["leo"]
    status = world.worker.status()["tidy"]
    assert status.failing == ("mio",)
    assert "the disk is full" in status.last_error
    world.failing = None
    world.later(60)
    assert world.work() == ["mio"]
    assert world.worker.status()["tidy"].failing == ()


def test_a_failure_is_said_once_and_one_of_another_kind_too(world, caplog):
    world.write("mio")
    world.failing = "mio"
    world.later(IDLE_SECONDS)
    for failure in (world.failure, ValueError("can't use '桜餅のひみつ'")):
        world.failure = failure
        for _ in range(3):
            world.work()
            world.later(300)
    assert caplog.text.count("tidy of mio is paused: the disk is full") == 1
    assert caplog.text.count("ValueError: ") == 1
    told = world.worker.status()["tidy"].last_error
    assert "ValueError" in told
    assert "桜餅" not in told


def test_a_chore_that_is_turned_off_is_not_done_and_says_so(world):
    world.write("mio")
    world.enabled = False
    world.later(IDLE_SECONDS)
    assert world.work() == []
    status = world.worker.status()["tidy"]
    assert (status.enabled, status.last_done) == (False, None)
    world.enabled = True
    assert world.work() == ["mio"]
    assert world.worker.status()["tidy"].last_done == world.now


def test_a_persona_that_is_gone_is_forgotten(world):
    world.worker.wake("nobody")
    world.later(IDLE_SECONDS)
    assert world.work() == []
    assert world.worker.step(world.now) == POLL_SECONDS


def test_a_step_takes_no_more_however_many_are_due(world):
    world.later(IDLE_SECONDS)
    for number in range(5_000):
        world.worker.wake(f"nobody-{number}")
    world.worker.step(world.now)
    tracemalloc.start()
    world.worker.step(world.now)
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most_bytes < 100_000  # a list of them would be 300,000


def test_the_thread_looks_at_everybody_after_a_start(world, eventually):
    world.write("mio")
    world.worker = world.with_chore()
    world.later(IDLE_SECONDS)
    world.worker.start()
    eventually(lambda: world.done == ["mio"])
    world.worker.stop()
    assert not any(thread.name == "upkeep worker" for thread in threading.enumerate())


def test_a_persona_has_a_round_when_something_falls_due_without_a_write(world):
    world.worker = world.with_chore(only_after_writes=True, next_due=lambda persona, now, settings: now + timedelta(days=3))
    world.write("mio")
    world.later(IDLE_SECONDS)
    assert world.work() == ["mio"]
    world.later(timedelta(days=3).total_seconds() - 1)
    assert world.work() == []
    world.later(1)
    assert world.work() == ["mio"]


def test_a_persona_has_a_round_when_the_settings_have_changed_that_say_when_it_is_due(world):
    world.worker = world.with_chore(only_after_writes=True, next_due=lambda *_: None)
    world.write("mio")
    world.later(IDLE_SECONDS)
    assert world.work() == ["mio"]
    world.later(INTERVAL.total_seconds())
    assert world.work() == []
    world.retention = {"fact_days": 1}
    assert world.work() == ["mio"]


def test_who_has_nothing_to_do_is_not_looked_at(world):
    wanted = set()
    world.worker = world.with_chore(has_work=wanted.__contains__)
    world.write("mio")
    world.later(IDLE_SECONDS)
    assert world.work() == []
    wanted.add("mio")
    assert world.work() == ["mio"]


def test_personas_whose_turn_is_over_keep_nobody_from_being_looked_at(world, monkeypatch):
    monkeypatch.setattr(chore_worker, "LOOKED_AT_ONCE", 1)
    world.worker = world.with_chore(only_after_writes=True)
    world.write("mio")
    with world.personas.writing("nilou"):
        pass
    world.later(IDLE_SECONDS)
    assert world.work() == ["mio"]
    world.later(INTERVAL.total_seconds())
    world.retention = {"fact_days": 1}
    assert "nilou" in [name for _ in range(6) for name in world.work()]


def test_what_one_chore_does_gives_the_others_of_that_persona_a_round(world):
    world.worker = world.with_chore(only_after_writes=True)
    told = []

    def follow(persona, now, settings):
        told.append(persona.name)
        return False

    chores = [
        Chore("tidy", world.piece, lambda _: True, lambda _: INTERVAL),
        Chore("follow", follow, lambda _: True, lambda _: INTERVAL, only_after_writes=True),
    ]
    world.worker = ChoreWorker(world.personas, chores, world.settings, lambda: world.now)
    for name in ("mio", "leo"):
        world.write(name)
    world.later(IDLE_SECONDS)
    world.work()
    assert sorted(told) == ["leo", "mio"]
    world.pieces = {"mio": 2}
    world.later(INTERVAL.total_seconds())
    world.work()
    assert sorted(told) == ["leo", "mio", "mio"]


def test_a_chore_that_changes_no_memories_gives_the_others_nothing_to_do(world):
    told = []

    def follow(persona, now, settings):
        told.append(persona.name)
        return False

    chores = [
        Chore("tidy", world.piece, interval=lambda _: INTERVAL, changes_memories=False),
        Chore("follow", follow, interval=lambda _: INTERVAL, only_after_writes=True),
    ]
    world.worker = ChoreWorker(world.personas, chores, world.settings, lambda: world.now)
    world.write("mio")
    world.later(IDLE_SECONDS)
    world.work()
    world.pieces = {"mio": 2}
    world.later(INTERVAL.total_seconds())
    assert world.work() == ["mio", "mio"]
    assert told == ["mio"]


def test_what_one_chore_does_in_many_pieces_has_the_others_look_once_more_and_not_after_each_piece(world, personas):
    done = []

    def tidy(persona, now, settings):
        done.append("tidy")
        return done.count("tidy") < 5

    def look(persona, now, settings):
        done.append("look")
        return False

    chores = [Chore(work.__name__, work, lambda _: True, lambda _: timedelta(), only_after_writes=True) for work in (look, tidy)]
    world.worker = ChoreWorker(personas, chores, world.settings, lambda: world.now)
    world.write("nilou")
    world.later(IDLE_SECONDS)
    world.work()
    assert done == ["look", *["tidy"] * 5, "look"]
