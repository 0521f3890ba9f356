"""When indexes are updated: writes at once and in turns, rebuilds as `vector_rebuild` allows, failures after a pause.

`IndexWorker.step` does one small piece of work and returns how long to wait before the next; the thread only repeats it. The work itself
is in `index.sync`, the choice of the next persona in `index_schedule`.
"""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from memory_mcp.config.settings import Settings
from memory_mcp.encoders.models import Embedder, Models
from memory_mcp.errors import EncoderFailed, MemoryMCPError
from memory_mcp.index import splitting, sync
from memory_mcp.jobs.backoff import Backoff, record_failure
from memory_mcp.jobs.index_schedule import IndexSchedule, Progress, Task
from memory_mcp.jobs.step_thread import POLL_SECONDS, StepThread
from memory_mcp.personas.names import directory_name
from memory_mcp.personas.registry import Persona, Personas
from memory_mcp.store.vectors import stored_vectors
from memory_mcp.store.vectors.index_cache import IndexCache

logger = logging.getLogger(__name__)


# The caller waits for the count. After a start with a thousand personas, the first call counts those beyond the limit as 1 each.
COUNTING_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Waiting:
    """What of a persona waits for a vector: memories, in the generation that serves; and chunks, in another one that the worker has not
    begun to embed them for."""

    memories: int = 0
    chunks: int = 0


class LagCounter:
    """Counts the lag and caches the counts. Thread-safe."""

    def __init__(self, personas: Personas) -> None:
        self._personas = personas
        # With each count the state of the task that it was made in: another state may have another count.
        self._counts: dict[str, tuple[tuple[object, ...], Waiting]] = {}

    def waiting(
        self, tasks: Mapping[str, Task], embedder: Embedder, loaded: tuple[str, ...], seconds: float = COUNTING_SECONDS
    ) -> dict[str, Waiting]:
        """What waits, by the name of each persona with something to index.

        Of a persona that can't be opened, or not in time, one memory waits.
        """
        until = time.monotonic() + seconds
        counts = {name: self._count(name, task, embedder, loaded, until) for name, task in tasks.items() if task.to_index(loaded)}
        for name in [cached for cached in list(self._counts) if cached not in counts]:
            self._counts.pop(name, None)
        return counts

    def _count(self, name: str, task: Task, embedder: Embedder, loaded: tuple[str, ...], until: float) -> Waiting:
        state = (loaded, task.prepared_for, task.writes, task.indexed_writes, task.batches)
        known_in, known = self._counts.get(name, (None, Waiting(memories=1)))
        if known_in == state or time.monotonic() > until:
            return known
        try:
            with self._personas.reading(name) as persona:
                counted = _counted(persona, task, embedder, loaded) if persona.exists else Waiting()
        except MemoryMCPError as error:
            logger.debug("the waiting memories of %s can't be counted: %s", name, error)
            return known
        self._counts[name] = state, counted
        return counted


def _counted(persona: Persona, task: Task, embedder: Embedder, loaded: tuple[str, ...]) -> Waiting:
    with persona.database.read() as connection:
        serving = sync.generation_to_serve(connection, embedder, loaded)
        begun = serving == embedder.generation or task.prepared_for == loaded
        lacking = 0 if begun else stored_vectors.chunks_lacking(connection, embedder.generation)
        return Waiting(stored_vectors.lag(connection, serving), lacking)


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """The state of the indexes. `waiting` counts memories without a vector by persona; `failing` personas are paused after a failure.

    `repaired` gives, by persona, why an index file was set aside and rebuilt since the start.
    """

    lag: int
    waiting: Mapping[str, int]
    re_embedding: Mapping[str, Progress]
    failing: tuple[str, ...]
    repaired: Mapping[str, str]
    last_rebuild: datetime | None
    last_error: str | None


class IndexWorker:
    """Keeps the indexes of all personas equal to their databases, one small batch at a time, in turns."""

    def __init__(
        self,
        personas: Personas,
        models: Callable[[], Models],
        settings: Callable[[], Settings],
        indexes: IndexCache,
        clock: Callable[[], datetime],
        *,
        earlier_unneeded: Callable[[Embedder], None] = lambda _: None,
    ) -> None:
        """`earlier_unneeded` is called with each other loaded model once every persona uses the one that indexes are made for."""
        self._personas, self._models, self._settings, self._indexes, self._clock = personas, models, settings, indexes, clock
        self._earlier_unneeded = earlier_unneeded
        self._schedule = IndexSchedule()
        self._lag = LagCounter(personas)
        self._loaded: tuple[str, ...] = ()
        self._model_backoff = Backoff()
        self._called_at = clock()
        self._last_rebuild: datetime | None = None
        self._last_error: str | None = None
        self._on_indexed: Callable[[str], None] = lambda _: None
        self._on_batch: Callable[[], None] = lambda: None
        self._thread = StepThread("index worker", lambda: self.step(clock()))

    def subscribe(self, on_indexed: Callable[[str], None], on_batch: Callable[[], None] = lambda: None) -> None:
        """Has `on_indexed` called with a persona's name whenever all its memories are embedded in the serving generation, and `on_batch` after each
        batch that leaves some waiting: what can wait should not take the processor from them."""
        self._on_indexed, self._on_batch = on_indexed, on_batch

    def wake(self, persona_name: str) -> None:
        """Call it after a write of this persona has been committed."""
        self._schedule.note_write(persona_name)
        self._thread.wake()

    def note_call(self) -> None:
        """Call it for each call of the server: idle work has to wait."""
        self._called_at = self._clock()

    def request_rebuild(self, persona_name: str) -> None:
        """Rebuilds the index of this persona as soon as nothing is left to embed, regardless of `vector_rebuild`."""
        self._schedule.request_rebuild(persona_name)
        self._thread.wake()

    def models_changed(self) -> None:
        """Call it after the available models have changed."""
        self._thread.wake()

    def settings_changed(self) -> None:
        """Call it after config.json has changed."""
        self._thread.wake()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ends after the current batch and saves the open indexes. Can be called twice."""
        self._thread.stop()
        for name in self._unsaved():
            self._attempt(name, self._clock(), self._save)

    def status(self, counting_seconds: float = COUNTING_SECONDS) -> IndexStatus:
        """The current state. Without a model, nothing counts as waiting. What isn't counted in so many seconds counts as 1 for each persona."""
        models = self._models()
        loaded = _loaded_models(models, self._settings())
        if loaded != self._loaded:  # with a newly loaded model, everything is still to be indexed
            self._schedule.add(self._personas.stores())
        tasks = self._schedule.snapshot() if loaded else {}
        embedder = models.target
        waiting = self._lag.waiting(tasks, embedder, loaded, counting_seconds) if embedder else {}
        lacking = {name: counted.memories for name, counted in waiting.items() if counted.memories}
        to_re_embed = {name: Progress(0, counted.chunks) for name, counted in waiting.items() if counted.chunks}
        return IndexStatus(
            lag=sum(lacking.values()),
            waiting=lacking,
            re_embedding=to_re_embed | {name: task.progress for name, task in tasks.items() if task.progress},
            failing=tuple(sorted(name for name, task in tasks.items() if task.backoff.failures)),
            repaired=self._by_persona(self._indexes.repaired()),
            last_rebuild=self._last_rebuild,
            last_error=self._last_error,
        )

    def step(self, now: datetime) -> float:
        """Does the most urgent piece of work. Returns how many seconds to wait before the next: 0 if there may be more."""
        models = self._models()
        loaded = _loaded_models(models, self._settings())
        if loaded != self._loaded:
            self._schedule.add(self._personas.stores())
            self._loaded = loaded
            self._model_backoff.clear()
        embedder = models.target
        if embedder is not None and self._model_backoff.over(now):
            name = self._schedule.next_to_index(now, loaded)
            if name is not None:
                self._attempt(name, now, lambda persona, task: self._index(persona, task, models, embedder))
                return 0
            for unneeded in models.loaded[1:]:
                self._earlier_unneeded(unneeded)
        rules = self._settings().vector_rebuild
        name = self._schedule.next_to_save(now, self._unsaved(), rules)
        if name is not None:
            self._attempt(name, now, self._save)
            return 0
        name = self._schedule.next_to_rebuild(now, self._called_at, rules)
        if name is not None:
            self._attempt(name, now, self._rebuild)
            return 0
        return POLL_SECONDS

    def _attempt(self, name: str, now: datetime, action: Callable[[Persona, Task], None]) -> None:
        """Runs an action for one persona. If it fails, that persona is paused, and the others go on."""
        task = self._schedule.of(name)
        writes = task.writes
        try:
            with self._personas.reading(name) as persona:
                if persona.exists:
                    action(persona, task)
                else:
                    self._schedule.forget(name, writes)
        except EncoderFailed as error:
            self._model_backoff.failed(now)
            self._last_error = record_failure(f"the index of {name}", task.backoff, error, now)
        except Exception as error:  # noqa: BLE001  `record_failure` logs it, and the other personas go on
            self._last_error = record_failure(f"the index of {name}", task.backoff, error, now)
        else:
            task.backoff.clear()

    def _index(self, persona: Persona, task: Task, models: Models, embedder: Embedder) -> None:
        """One batch: new writes first, then re-embedding for another generation, then deleting unused vectors."""
        settings = self._settings()
        loaded = _loaded_models(models, settings)
        if task.prepared_for != loaded:
            self._schedule.note_write(persona.name)  # preparing may add more than one batch
            self._prepare(persona, task, models, embedder, settings)
        writes = task.writes
        serving = models.of_generation(sync.serving_generation(persona)) or embedder
        applied = sync.apply_queue(persona, serving, self._indexes, zone=settings.zone, rules=settings.long_texts)
        self._model_backoff.clear()
        task.batches += 1
        if applied.waiting:
            self._on_batch()
            return
        if serving.generation != embedder.generation:
            self._re_embed(persona, task, embedder, settings)
        # Vectors are made once: while the configured model is away, all of an index wait for it.
        elif not sync.drop_unused(persona, [embedder.generation] if models.embedder else None, self._indexes):
            task.outdated = sync.needs_rebuild(persona, embedder.generation, self._indexes)
            task.indexed_writes = writes
            self._on_indexed(persona.name)

    def _prepare(self, persona: Persona, task: Task, models: Models, embedder: Embedder, settings: Settings) -> None:
        loaded = _loaded_models(models, settings)
        serving = sync.prepare(persona, embedder, loaded)
        for model in {serving: models.of_generation(serving) or embedder, embedder.generation: embedder}.values():
            splitting.apply_rule(persona, model, settings.long_texts)
        re_embedding = serving != embedder.generation
        task.progress = Progress(0, sync.chunks_lacking(persona, embedder.generation)) if re_embedding else None
        task.after = 0
        task.prepared_for = loaded

    def _re_embed(self, persona: Persona, task: Task, embedder: Embedder, settings: Settings) -> None:
        result = sync.re_embed(persona, embedder, self._indexes, zone=settings.zone, rules=settings.long_texts, after=task.after)
        task.after = result.after
        embedded = (task.progress.done if task.progress else 0) + result.embedded
        task.progress = None if result.swapped else Progress(embedded, max(embedded, task.progress.total if task.progress else 0))
        if result.swapped:
            logger.info("the index of %s now uses %s", persona.name, embedder.generation)

    def _save(self, persona: Persona, task: Task) -> None:
        task.saved_at = self._clock()
        serving = sync.serving_generation(persona)
        if serving is None or not sync.save(persona, serving, self._indexes):
            self._indexes.drop(persona.database, keep=serving)  # unsaved changes are of a generation that no longer serves

    def _rebuild(self, persona: Persona, task: Task) -> None:
        requests = task.rebuild_requests
        serving = sync.serving_generation(persona)
        if serving is not None:
            sync.rebuild(persona, serving, self._indexes)
            task.rebuilt_at = task.saved_at = self._last_rebuild = self._clock()
        task.rebuilds_done, task.outdated = requests, False

    def _unsaved(self) -> list[str]:
        """The personas whose open index has unsaved changes."""
        return list(self._by_persona(dict.fromkeys(self._indexes.dirty(), "")))

    def _by_persona(self, by_directory: Mapping[Path, str]) -> dict[str, str]:
        """Replaces the directories by the names of the personas."""
        if not by_directory:
            return {}
        directories = {self._personas.directory / directory_name(name): name for name in self._schedule.snapshot()}
        return {directories[path]: text for path, text in by_directory.items() if path in directories}


def _loaded_models(models: Models, settings: Settings) -> tuple[str, ...]:
    """The loaded generations, first that which indexes are made for, and the chunking rule; empty without a model."""
    loaded = tuple(model.generation for model in models.loaded)
    rules = settings.long_texts
    return (*loaded, f"{rules.chunk_tokens}:{rules.overlap_tokens}") if loaded else ()
