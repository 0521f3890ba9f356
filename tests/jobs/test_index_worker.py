"""The worker by its steps, with a clock that jumps: turns, modes, failures, and what it tells. Once as a thread."""

import json
import threading
from contextlib import contextmanager
from datetime import timedelta

import numpy as np
import pytest
from fakes import HashingEmbedder
from index_comparison import compare
from panics import Panicked

from memory_mcp.config.settings import Privacy, Settings
from memory_mcp.domain import Draft
from memory_mcp.encoders.models import Models, ModelState
from memory_mcp.errors import StoreFull
from memory_mcp.index import sync
from memory_mcp.jobs.index_schedule import Progress, Task
from memory_mcp.jobs.index_worker import IndexWorker, LagCounter, Waiting
from memory_mcp.jobs.step_thread import POLL_SECONDS
from memory_mcp.personas.names import directory_name
from memory_mcp.remember.pipeline import remember_many
from memory_mcp.store.vectors import index_queue, stored_vectors
from memory_mcp.store.vectors.faiss_index import VectorIndex
from memory_mcp.store.vectors.index_cache import IndexCache

OFF = ModelState("off")


class World:
    """A worker with everything that it is handed, each part of which a test may change."""

    def __init__(self, personas, now, zone):
        self.personas, self.now, self.zone = personas, now, zone
        self.embedder, self.earlier, self.fallback = HashingEmbedder(), None, None
        self.rules = {"mode": "idle", "idle_seconds": 30, "min_interval": 120}
        self.indexes = IndexCache()
        self.retired = 0
        self.worker = self.restarted()

    def restarted(self):
        return IndexWorker(self.personas, self.models, self.settings, self.indexes, lambda: self.now, earlier_unneeded=self.retire)

    def models(self):
        return Models(self.embedder, None, OFF, OFF, earlier=self.earlier, fallback=self.fallback)

    def settings(self):
        return Settings(embeddings_model=None, reranker_model=None, vector_rebuild=self.rules)

    def retire(self, unneeded):
        assert unneeded in (self.earlier, self.fallback)
        self.earlier, self.fallback = (None if model is unneeded else model for model in (self.earlier, self.fallback))
        self.retired += 1

    def write(self, name, *contents):
        with self.personas.writing(name) as persona:
            remember_many(persona, [Draft(content) for content in contents], now=self.now, zone=self.zone, privacy=Privacy())
        self.worker.wake(name)

    def later(self, seconds):
        self.now += timedelta(seconds=seconds)

    def step(self):
        return self.worker.step(self.now)

    def work(self):
        """Steps until there is nothing left to do now. Returns how many did something."""
        steps = 0
        while self.step() == 0:
            steps += 1
            assert steps < 10_000
        return steps

    def waiting(self, name):
        with self.personas.reading(name) as persona, persona.database.read() as connection:
            return index_queue.length(connection)

    def differences(self, name, by=None):
        with self.personas.reading(name) as persona:
            return compare(persona, (by or self.embedder).generation, IndexCache())

    def manifest(self, name):
        path = self.personas.directory / directory_name(name) / "vector_store" / "manifest.json"
        return json.loads(path.read_text()) if path.exists() else None

    def vectors(self, name):
        """How many vectors there are of each generation."""
        with self.personas.reading(name) as persona, persona.database.read() as connection:
            return dict(stored_vectors.counts(connection))

    def open(self, name):
        with self.personas.reading(name) as persona:
            return self.indexes.get(persona.database, self.embedder.generation)


@pytest.fixture
def world(personas, now, zone):
    made = World(personas, now, zone)
    yield made
    made.worker.stop()


@pytest.mark.slow
def test_twenty_personas_are_all_indexed_and_rebuilt_when_the_server_is_idle(world):
    names = [f"さくら{number}" for number in range(20)]
    for name in names:
        world.write(name, *(f"{name}の記憶{number}" for number in range(5)))
    world.work()
    assert [world.waiting(name) for name in names] == [0] * 20
    assert world.worker.status().lag == 0
    assert {world.manifest(name) is None for name in names} == {True}
    world.later(30)
    assert world.work() == 20
    assert [world.manifest(name)["count"] for name in names] == [5] * 20
    assert not any(world.differences(name) for name in names)
    assert world.worker.status().last_rebuild == world.now
    assert world.embedder.documents_asked == 100


def test_one_who_wrote_much_does_not_keep_others_waiting(world):
    world.write("chatty", *(f"記憶{number}" for number in range(320)))
    world.step()
    for name in ("a", "b"):
        world.write(name, "京都")
    for _ in range(3):
        world.step()
    assert (world.waiting("a"), world.waiting("b"), world.waiting("chatty")) == (0, 0, 320 - 2 * 32)
    status = world.worker.status()
    assert status.waiting["chatty"] == status.lag - sum(count for name, count in status.waiting.items() if name != "chatty")
    world.work()
    assert world.worker.status().waiting == {}


def test_whoever_subscribes_hears_of_each_batch_that_leaves_some_waiting_and_of_the_end(world):
    batches, ends = [], []
    world.worker.subscribe(ends.append, lambda: batches.append(world.waiting("a")))
    world.write("a", *(f"記憶{number}" for number in range(2 * sync.BATCH + 1)))
    world.work()
    assert (batches, set(ends)) == ([sync.BATCH + 1, 1], {"a"})


def test_at_the_start_every_persona_is_looked_at(world):
    world.write("a", "京都")
    world.write("b", "苺")
    world.worker = world.restarted()
    world.work()
    assert (world.waiting("a"), world.waiting("b")) == (0, 0)


def test_without_a_model_nothing_is_done_and_nothing_lags(world):
    model, world.embedder = world.embedder, None
    world.write("a", "京都")
    assert world.step() == POLL_SECONDS
    assert (world.waiting("a"), world.worker.status().lag) == (1, 0)
    world.embedder = model
    world.work()
    assert world.waiting("a") == 0


@pytest.mark.parametrize(("mode", "rebuilt"), [("idle", [False, False, True]), ("auto", [True, True, True]), ("manual", [False] * 3)])
def test_rebuilds_follow_the_mode(world, mode, rebuilt):
    world.rules["mode"] = mode
    world.write("a", "京都")
    seen = []
    for seconds in (0, 29, 1):
        world.later(seconds)
        world.work()
        seen.append(world.manifest("a") is not None)
    assert seen == rebuilt


def test_a_call_puts_idle_work_off(world):
    world.write("a", "京都")
    world.work()
    world.later(29)
    world.worker.note_call()
    world.later(29)
    assert world.work() == 0
    world.later(1)
    assert world.work() == 1


def test_the_mode_can_be_changed_while_it_runs(world):
    world.rules["mode"] = "manual"
    world.write("a", "京都")
    world.work()
    world.rules["mode"] = "auto"
    world.worker.settings_changed()
    world.work()
    assert world.manifest("a")["count"] == 1


def test_a_rebuild_on_request_is_done_in_every_mode(world):
    world.rules["mode"] = "manual"
    world.write("a", "京都")
    world.worker.request_rebuild("a")
    world.worker.request_rebuild("nobody")
    world.work()
    assert world.manifest("a")["count"] == 1
    world.open("a").remove([1])
    world.worker.request_rebuild("a")
    assert world.work() == 1
    assert world.open("a").count == 1


def test_rebuilds_of_one_persona_keep_their_distance(world):
    world.rules["mode"] = "auto"
    world.write("a", "京都")
    world.work()
    world.later(60)
    world.write("a", "苺")
    world.work()
    assert world.manifest("a")["count"] == 1
    world.later(60)
    world.work()
    assert world.manifest("a")["count"] == 2


def test_a_write_during_a_rebuild_is_not_lost(world, monkeypatch):
    world.rules.update(mode="auto", min_interval=0)
    world.write("a", "京都")
    rebuild = sync.rebuild

    def rebuild_while_somebody_writes(*arguments):
        monkeypatch.undo()
        index = rebuild(*arguments)
        world.write("a", "苺")
        return index

    monkeypatch.setattr(sync, "rebuild", rebuild_while_somebody_writes)
    world.work()
    assert world.manifest("a")["count"] == 2
    assert not world.differences("a")


def test_a_request_during_a_rebuild_is_answered_by_another(world, monkeypatch):
    world.rules["mode"] = "manual"
    world.write("a", "京都")
    world.work()
    rebuild = sync.rebuild
    done = []

    def rebuild_while_somebody_asks(*arguments):
        done.append(arguments)
        if len(done) == 1:
            world.worker.request_rebuild("a")
        return rebuild(*arguments)

    monkeypatch.setattr(sync, "rebuild", rebuild_while_somebody_asks)
    world.worker.request_rebuild("a")
    world.work()
    assert len(done) == 2


def test_a_write_at_the_very_end_of_the_work_is_not_lost(world, monkeypatch):
    needs_rebuild = sync.needs_rebuild

    def needs_rebuild_while_somebody_writes(*arguments):
        monkeypatch.undo()
        world.write("a", "苺")
        return needs_rebuild(*arguments)

    monkeypatch.setattr(sync, "needs_rebuild", needs_rebuild_while_somebody_writes)
    world.write("a", "京都")
    world.work()
    assert world.waiting("a") == 0


def test_an_open_index_is_saved_after_the_queue_is_empty_and_then_at_intervals(world):
    world.rules["mode"] = "manual"
    world.write("a", *(f"記憶{number}" for number in range(40)))
    world.step()
    world.open("a")
    world.work()
    assert world.manifest("a")["count"] == 40
    world.write("a", "京都")
    world.work()
    assert world.manifest("a")["count"] == 40
    world.later(120)
    world.work()
    assert world.manifest("a")["count"] == 41
    assert world.work() == 0


def test_stopping_saves_what_is_open(world):
    world.rules["mode"] = "manual"
    world.write("a", "京都")
    world.work()
    world.open("a")
    world.worker.stop()
    assert world.manifest("a")["count"] == 1


@pytest.mark.parametrize("harm", ["database", "identity"])
def test_a_persona_that_fails_is_put_off_said_once_and_stops_nobody(world, caplog, harm):
    world.write("a", "京都")
    world.write("z", "京都")
    world.personas.close()
    path = world.personas.directory / "a" / ("memory.sqlite" if harm == "database" else "persona.json")
    sound = path.read_bytes()
    path.write_bytes(b"no such thing " * 500)
    world.worker = world.restarted()
    world.worker.wake("a")
    for _ in range(5):
        world.work()
        world.later(300)
    assert world.waiting("z") == 0
    assert world.worker.status().failing == ("a",)
    assert world.worker.status().last_error
    assert caplog.text.count("the index of a is paused") == 1
    path.write_bytes(sound)
    world.later(300)
    world.work()
    assert world.waiting("a") == 0
    assert world.worker.status().failing == ()


def test_an_unforeseen_failure_is_logged_with_its_place_once(world, caplog, monkeypatch):
    world.write("a", "京都")
    monkeypatch.setattr(sync, "apply_queue", lambda *_, **__: 1 / 0)
    for _ in range(3):
        world.work()
        world.later(300)
    assert caplog.text.count("ZeroDivisionError: ") == 1
    monkeypatch.undo()
    world.work()
    assert world.waiting("a") == 0


def test_a_failure_of_another_kind_is_said_too_while_a_persona_is_put_off(world, caplog, monkeypatch):
    world.write("a", "京都")

    def full(*_, **__):
        raise StoreFull("the disk is full", "", "Make room")

    for fault, times in ((full, 3), (lambda *_, **__: 1 / 0, 3), (full, 2)):
        monkeypatch.setattr(sync, "apply_queue", fault)
        for _ in range(times):
            world.work()
            world.later(300)
    assert caplog.text.count("the index of a is paused: the disk is full") == 2
    assert caplog.text.count("ZeroDivisionError: ") == 1


@pytest.mark.parametrize(
    ("failure", "said"),
    [(ValueError("can't use '桜餅のひみつ'"), "ValueError;"), (OSError(5, "Input/output error", "桜餅"), "Input/output error;")],
)
def test_what_is_told_of_an_unforeseen_failure_names_its_kind_and_quotes_nothing(world, monkeypatch, failure, said):
    def quoting(*_, **__):
        raise failure

    world.write("a", "京都")
    monkeypatch.setattr(sync, "apply_queue", quoting)
    world.work()
    told = world.worker.status().last_error
    assert said in told
    assert "log" in told
    assert "桜餅" not in told


def test_a_model_that_fails_is_left_alone_for_a_while_and_asked_again(world):
    for name in ("a", "b", "c"):
        world.write(name, "京都")
    asked = []
    embed = world.embedder.embed_documents
    world.embedder.embed_documents = lambda texts: asked.append(world.now) or embed(texts)
    world.embedder.failing = True
    world.work()
    assert len(asked) == 1
    world.later(1)
    world.work()
    assert len(asked) == 2
    world.later(1)
    world.work()
    assert len(asked) == 2
    world.embedder.failing = False
    world.later(60)
    world.work()
    assert [world.waiting(name) for name in ("a", "b", "c")] == [0, 0, 0]
    assert world.worker.status().lag == 0


def test_a_model_that_answered_once_is_not_punished_for_earlier_failures(world):
    world.write("a", "京都")
    world.embedder.failing = True
    for _ in range(6):
        world.work()
        world.later(60)
    world.embedder.failing = False
    world.work()
    world.embedder.failing = True
    world.write("b", "苺")
    world.work()
    world.embedder.failing = False
    world.later(1)
    world.work()
    assert world.waiting("b") == 0


def test_an_unsaved_index_of_a_generation_that_answers_no_more_keeps_nobody_busy(world):
    world.rules.update(mode="manual", min_interval=0)
    world.write("a", "京都")
    world.work()
    retired = VectorIndex("retired")
    retired.add([1], np.eye(1, 8, dtype=np.float32))
    with world.personas.reading("a") as persona:
        world.indexes.put(persona.database, retired)
    assert world.work() == 1
    assert world.indexes.dirty() == set()


def test_a_persona_that_is_gone_is_forgotten(world):
    world.worker.wake("nobody")
    world.work()
    assert world.worker.status().waiting == {}
    assert not world.personas.exists("nobody")


def made_just_now(world, monkeypatch, name):
    """Has a persona made at the moment in which the worker finds that there is none."""
    reading = world.personas.reading

    @contextmanager
    def finding_none(of):
        with reading(of) as persona:
            if of == name and not persona.exists:
                monkeypatch.undo()
                world.write(name, "京都")
            yield persona

    monkeypatch.setattr(world.personas, "reading", finding_none)


def test_a_persona_that_is_made_as_it_is_found_to_be_gone_is_indexed(world, monkeypatch):
    world.worker.wake("mio")
    made_just_now(world, monkeypatch, "mio")
    world.work()
    assert (world.open("mio").count, world.waiting("mio")) == (1, 0)


def test_a_model_that_is_changed_while_it_runs_is_swapped_for_every_persona(world):
    names = ("a", "b")
    for name in names:
        world.write(name, *(f"記憶{number}" for number in range(100)))
    world.work()
    world.earlier, world.embedder = world.embedder, HashingEmbedder(96, "other")
    world.worker.models_changed()
    assert world.worker.status().re_embedding == dict.fromkeys(names, Progress(0, 100))
    generations, progress = {name: [] for name in names}, []
    while world.step() == 0:
        for name in names:
            with world.personas.reading(name) as persona:
                serving = sync.serving_generation(persona)
                generations[name].append(serving)
                model = world.models().of_generation(serving)
                if model:
                    assert {chunk for chunk, _ in world.indexes.get(persona.database, serving).search(model.embed_query("記憶1"), 100)}
        progress += [one.done / one.total for name, one in world.worker.status().re_embedding.items() if name == "a"]
    assert progress == sorted(progress)
    assert len(set(progress)) > 3
    for name in names:
        assert list(dict.fromkeys(generations[name])) == ["hashing:64:plain", "other:96:plain"]
        assert not world.differences(name)
    assert (world.retired, world.earlier) == (1, None)


@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_fallback_has_vectors_of_its_own_beside_those_of_the_configured_model(world, is_restarted):
    configured, stand_in = world.embedder, HashingEmbedder(96, "stand-in")
    world.write("a", *(f"記憶{number}" for number in range(40)))
    world.work()
    world.embedder, world.fallback = None, stand_in
    if is_restarted:
        world.indexes = IndexCache()
        world.worker = world.restarted()
    else:
        world.earlier = configured
    world.worker.models_changed()
    world.work()
    assert world.earlier is None
    assert world.vectors("a") == {configured.generation: 40, stand_in.generation: 40}
    assert not world.differences("a", by=stand_in)
    world.write("a", "昨日の記憶", "今日の記憶")
    world.work()
    assert world.vectors("a") == {configured.generation: 40, stand_in.generation: 42}
    world.embedder = configured
    world.worker.models_changed()
    world.work()
    assert (configured.documents_asked, stand_in.documents_asked) == (42, 42)  # nothing twice
    assert world.vectors("a") == {configured.generation: 42}
    assert not world.differences("a")
    assert world.fallback is None


def test_a_model_that_comes_while_a_persona_is_being_worked_on_is_not_overlooked(world):
    """Somebody asks how things stand in the middle of a batch, and is told of the new model before the worker knows of it."""
    world.write("a", "京都")
    world.work()
    first, second = world.embedder, HashingEmbedder(96, "other")
    embed = first.embed_documents

    def another_model_comes(texts):
        world.embedder, world.earlier = second, first
        assert world.worker.status().lag
        return embed(texts)

    first.embed_documents = another_model_comes
    world.write("a", "苺")
    world.step()
    world.work()
    assert (world.open("a").count, world.earlier) == (2, None)


def test_before_the_first_step_with_a_model_every_memory_without_a_vector_counts(world):
    world.write("a", "京都", "大阪", "奈良")
    world.write("b", "苺")
    world.work()
    world.write("a", "神戸", "大津")
    world.worker = world.restarted()
    assert world.worker.status().waiting == {"a": 2}
    world.embedder = HashingEmbedder(96, "other")
    assert world.worker.status().waiting == {"a": 5, "b": 1}


def test_what_waits_is_counted_anew_after_each_batch_and_each_write(world):
    world.write("a", *(f"記憶{number}" for number in range(100)))
    assert world.worker.status().lag == 100
    world.step()
    assert world.worker.status().lag == 68
    world.write("a", "京都", "大阪")
    assert world.worker.status().lag == 70
    world.work()
    assert world.worker.status().lag == 0


def test_a_write_that_needs_no_vector_is_no_lag(world):
    world.write("a", "京都")
    world.work()
    world.worker.wake("a")
    assert world.worker.status().waiting == {}


def test_a_persona_that_cannot_be_counted_in_time_counts_as_one(world):
    for name in ("a", "b"):
        world.write(name, "京都", "大阪")
    tasks = {name: Task(writes=1) for name in ("a", "b")}
    assert LagCounter(world.personas).waiting(tasks, world.embedder, ("hashing",), seconds=-1) == dict.fromkeys("ab", Waiting(memories=1))
    assert LagCounter(world.personas).waiting(tasks, world.embedder, ("hashing",)) == dict.fromkeys("ab", Waiting(memories=2))


def test_a_persona_that_cannot_be_opened_counts_as_one(world):
    world.write("a", "京都", "大阪")
    world.personas.path_of("broken").parent.mkdir()
    world.personas.path_of("broken").write_bytes(b"no database" * 100)
    assert world.restarted().status().waiting == {"a": 2, "broken": 1}


def test_a_model_that_was_changed_while_the_server_was_off_answers_from_the_first_batch_on(world):
    world.write("a", *(f"記憶{number}" for number in range(100)))
    world.work()
    world.embedder = HashingEmbedder(96, "other")
    world.worker = world.restarted()
    world.step()
    assert world.open("a").count == 32
    assert world.worker.status().lag == 68
    world.work()
    assert world.open("a").count == 100
    assert not world.differences("a")


def test_as_a_thread_it_indexes_what_is_written_and_stops_cleanly(world, eventually):
    world.worker.start()
    for number in range(10):
        world.write("a", f"記憶{number}")
    eventually(lambda: world.waiting("a") == 0 and world.worker.status().lag == 0)
    world.worker.stop()
    world.worker.stop()
    assert "index worker" not in {thread.name for thread in threading.enumerate()}


def test_a_stumble_does_not_end_the_thread(world, eventually, caplog):
    models = world.models
    world.worker._models = lambda: 1 / 0
    world.worker.start()
    eventually(lambda: "a step of the" in caplog.text)
    world.worker._models = models
    world.write("a", "京都")
    eventually(lambda: world.waiting("a") == 0)


@pytest.mark.slow
def test_a_library_that_breaks_off_does_not_end_the_thread(world, eventually, caplog, monkeypatch):
    def breaks_off(*_, **__):
        raise Panicked("byte index 3 is not a char boundary")

    monkeypatch.setattr(sync, "apply_queue", breaks_off)
    world.write("a", "京都")
    world.worker.start()
    eventually(lambda: "char boundary" in caplog.text)
    monkeypatch.undo()
    eventually(lambda: world.waiting("a") == 0)
