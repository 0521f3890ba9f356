"""When indexes are brought up to date: writes at once and in turns, rebuilds by `vector_rebuild`, failures later.

`IndexWorker.step` does one small piece of work and says how long to wait before the next; the thread only repeats it. What is
done lives in `index.sync`, who is next in `ledger`.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from memory_mcp.config.settings import Settings
from memory_mcp.encoders.models import Models
from memory_mcp.encoders.protocols import Embedder
from memory_mcp.errors import EncoderFailed
from memory_mcp.index import splitting, sync
from memory_mcp.jobs.backoff import put_off
from memory_mcp.jobs.index_schedule import Backoff, Ledger, Progress, Task
from memory_mcp.jobs.lag import Lag
from memory_mcp.jobs.step_thread import POLL_SECONDS, Stepping
from memory_mcp.personas.names import directory_name
from memory_mcp.personas.registry import Persona, Personas
from memory_mcp.store.vectors.index_cache import IndexShelf

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """How the indexes are doing. `waiting` counts memories without a vector, per persona; `failing` are those that are put off.

    `repaired` says why an index file was set aside and made again since the start.
    """

    lag: int
    waiting: Mapping[str, int]
    re_embedding: Mapping[str, Progress]
    failing: tuple[str, ...]
    repaired: Mapping[str, str]
    last_rebuild: datetime | None
    last_error: str | None


class IndexWorker:
    """Keeps the indexes of all personas equal to their databases, one small batch at a time and each persona in its turn."""

    def __init__(
        self,
        personas: Personas,
        models: Callable[[], Models],
        settings: Callable[[], Settings],
        indexes: IndexShelf,
        clock: Callable[[], datetime],
        *,
        earlier_unneeded: Callable[[], None] = lambda: None,
    ) -> None:
        """`earlier_unneeded` is called when every persona answers from the newer of two models."""
        self._personas, self._models, self._settings, self._indexes, self._clock = personas, models, settings, indexes, clock
        self._earlier_unneeded = earlier_unneeded
        self._ledger = Ledger()
        self._lag = Lag(personas)
        self._loaded: tuple[str, ...] = ()
        self._model = Backoff()
        self._called_at = clock()
        self._last_rebuild: datetime | None = None
        self._last_error: str | None = None
        self._settled: Callable[[str], None] = lambda _: None
        self._thread = Stepping("index worker", lambda: self.step(clock()))

    def subscribe(self, settled: Callable[[str], None]) -> None:
        """Calls this with the name of a persona whenever all that it has is embedded in the generation that answers."""
        self._settled = settled

    def wake(self, persona_name: str) -> None:
        """A write of this persona is on the disk."""
        self._ledger.wake(persona_name)
        self._thread.wake()

    def note_call(self) -> None:
        """Somebody uses the server: idle work has to wait."""
        self._called_at = self._clock()

    def request_rebuild(self, persona_name: str) -> None:
        """Makes the index of this persona anew as soon as nothing is left to embed, whatever `vector_rebuild` says."""
        self._ledger.ask_for_rebuild(persona_name)
        self._thread.wake()

    def models_changed(self) -> None:
        """Another model than before is there, or none."""
        self._thread.wake()

    def settings_changed(self) -> None:
        """config.json says something else."""
        self._thread.wake()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ends after the batch that is under way, and saves what is open and unsaved. May be called twice."""
        self._thread.stop()
        for name in self._unsaved():
            self._attempt(name, self._clock(), self._save)

    def status(self) -> IndexStatus:
        """What is waiting counts only while a model is there: without one nothing is."""
        models = self._models()
        loaded = _sought(models, self._settings())
        if loaded != self._loaded:  # a model that has just come in must not seem to have everything done
            self._ledger.know(self._personas.names())
        tasks = self._ledger.snapshot() if loaded else {}
        embedder = models.embedder or models.earlier
        waiting = self._lag.waiting(tasks, embedder, loaded) if embedder else {}
        return IndexStatus(
            lag=sum(waiting.values()),
            waiting=waiting,
            re_embedding={name: task.progress for name, task in tasks.items() if task.progress},
            failing=tuple(sorted(name for name, task in tasks.items() if task.backoff.failures)),
            repaired=self._named(self._indexes.mended()),
            last_rebuild=self._last_rebuild,
            last_error=self._last_error,
        )

    def step(self, now: datetime) -> float:
        """Does the most urgent piece of work there is. Returns how many seconds to wait before the next: 0 if there may be more."""
        models = self._models()
        loaded = _sought(models, self._settings())
        if loaded != self._loaded:
            self._ledger.know(self._personas.names())
            self._loaded = loaded
            self._model.clear()
        embedder = models.embedder or models.earlier
        if embedder is not None and self._model.over(now):
            name = self._ledger.next_to_index(now, loaded)
            if name is not None:
                self._attempt(name, now, lambda persona, task: self._index(persona, task, models, embedder))
                return 0
            if models.embedder and models.earlier:
                self._earlier_unneeded()
        rules = self._settings().vector_rebuild
        name = self._ledger.next_to_save(now, self._unsaved(), rules)
        if name is not None:
            self._attempt(name, now, self._save)
            return 0
        name = self._ledger.next_to_rebuild(now, self._called_at, rules)
        if name is not None:
            self._attempt(name, now, self._rebuild)
            return 0
        return POLL_SECONDS

    def _attempt(self, name: str, now: datetime, action: Callable[[Persona, Task], None]) -> None:
        """Does something for one persona. If it fails, that persona is put off, and the others go on."""
        task = self._ledger.of(name)
        try:
            with self._personas.reading(name) as persona:
                if persona.exists:
                    action(persona, task)
                else:
                    self._ledger.forget(name)
        except EncoderFailed as error:
            self._model.failed(now)
            self._last_error = put_off(f"the index of {name}", task.backoff, error, now)
        except Exception as error:  # noqa: BLE001  whatever it is, `put_off` logs it, and the others have their turns
            self._last_error = put_off(f"the index of {name}", task.backoff, error, now)
        else:
            task.backoff.clear()

    def _index(self, persona: Persona, task: Task, models: Models, embedder: Embedder) -> None:
        """One batch: what was written goes first, then the way to another generation, then what that left behind."""
        settings = self._settings()
        loaded = _sought(models, settings)
        if task.settled_for != loaded:
            self._ledger.wake(persona.name)  # what this brings up takes more than one batch
            self._look_over(persona, task, models, embedder, settings)
        woken = task.woken
        answering = models.of_generation(sync.serving_generation(persona)) or embedder
        applied = sync.apply_queue(persona, answering, self._indexes, zone=settings.zone, rules=settings.long_texts)
        self._model.clear()
        task.batches += 1
        if applied.waiting:
            return
        if answering.generation != embedder.generation:
            self._re_embed(persona, task, embedder, settings)
        elif not sync.drop_unused(persona, [embedder.generation], self._indexes):
            task.outdated = sync.needs_rebuild(persona, embedder.generation, self._indexes)
            task.looked = woken
            self._settled(persona.name)

    def _look_over(self, persona: Persona, task: Task, models: Models, embedder: Embedder, settings: Settings) -> None:
        loaded = _sought(models, settings)
        serving = sync.look_over(persona, embedder, loaded)
        for known in {serving: models.of_generation(serving) or embedder, embedder.generation: embedder}.values():
            splitting.settle(persona, known, settings.long_texts)
        elsewhere = serving != embedder.generation
        task.progress = Progress(0, sync.chunks_lacking(persona, embedder.generation)) if elsewhere else None
        task.after = 0
        task.settled_for = loaded

    def _re_embed(self, persona: Persona, task: Task, embedder: Embedder, settings: Settings) -> None:
        done = sync.re_embed(persona, embedder, self._indexes, zone=settings.zone, rules=settings.long_texts, after=task.after)
        task.after = done.after
        so_far = (task.progress.done if task.progress else 0) + done.embedded
        task.progress = None if done.swapped else Progress(so_far, max(so_far, task.progress.total if task.progress else 0))
        if done.swapped:
            logger.info("%s answers from %s now", persona.name, embedder.generation)

    def _save(self, persona: Persona, task: Task) -> None:
        task.saved_at = self._clock()
        serving = sync.serving_generation(persona)
        if serving is None or not sync.save(persona, serving, self._indexes):
            self._indexes.drop(persona.database, keep=serving)  # what is unsaved is of a generation that answers no more

    def _rebuild(self, persona: Persona, task: Task) -> None:
        asked = task.asked
        serving = sync.serving_generation(persona)
        if serving is not None:
            sync.rebuild(persona, serving, self._indexes)
            task.rebuilt_at = task.saved_at = self._last_rebuild = self._clock()
        task.answered, task.outdated = asked, False

    def _unsaved(self) -> list[str]:
        """The personas whose open index has changes that their file lacks."""
        return list(self._named(dict.fromkeys(self._indexes.dirty(), "")))

    def _named(self, by_directory: Mapping[Path, str]) -> dict[str, str]:
        """The same by the personas' names."""
        if not by_directory:
            return {}
        directories = {self._personas.directory / directory_name(name): name for name in self._ledger.snapshot()}
        return {directories[path]: said for path, said in by_directory.items() if path in directories}


def _sought(models: Models, settings: Settings) -> tuple[str, ...]:
    """The generations that are loaded, the one that is to answer first, and how long texts are split; nothing without a model."""
    loaded = tuple(known.generation for known in (models.embedder, models.earlier) if known)
    rules = settings.long_texts
    return (*loaded, f"{rules.chunk_tokens}:{rules.overlap_tokens}") if loaded else ()
