"""The loaded models. A background thread loads them, and a call uses those that are loaded at that moment.

A model that can't be loaded never blocks anything: its state becomes `absent` with a reason, and loading is retried after
5 s, 10 s, … 5 min, so that a model that appears later is used.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from memory_mcp.config.settings import Settings
from memory_mcp.encoders.languages import limited
from memory_mcp.encoders.loading.model_slot import Loader, Model, ModelSlot, ModelSpec, embedder_spec, fallback_spec, release, reranker_spec
from memory_mcp.encoders.models import Embedder, Models, ModelState, Reranker

RETRY_SECONDS = (5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 300.0)
SHUTDOWN_SECONDS = 30.0

logger = logging.getLogger(__name__)


class ModelRegistry:
    """Loads the models that the settings name. The composition root creates one, starts it with the server and closes it at the end."""

    def __init__(
        self,
        embedder_loader: Loader[Embedder],
        reranker_loader: Loader[Reranker],
        on_change: Callable[[], None] | None = None,
        retry_seconds: tuple[float, ...] = RETRY_SECONDS,
    ) -> None:
        """`on_change` is called on the registry's thread after the available models have changed."""
        self._embedder = ModelSlot("embedder", embedder_loader, retry_seconds)
        self._reranker = ModelSlot("reranker", reranker_loader, retry_seconds)
        self._fallback = ModelSlot("fallback", embedder_loader, retry_seconds)
        self._earlier: tuple[ModelSpec, Embedder] | None = None
        self._on_change = on_change
        self._unreported_change = False  # something changed and `on_change` has not been called for it
        self._gave_up = False
        self._settings: Settings | None = None
        self._changed = threading.Condition()
        self._closed = False
        # A daemon, so that a download can't keep the process from ending. `close` waits for anything else.
        self._thread = threading.Thread(target=self._serve, name="model-registry", daemon=True)

    @property
    def _slots(self) -> tuple[ModelSlot[Embedder], ModelSlot[Embedder], ModelSlot[Reranker]]:
        return self._embedder, self._fallback, self._reranker

    def start(self, settings: Settings) -> None:
        """Starts loading the configured models. Returns at once."""
        self.configure(settings)
        self._thread.start()

    def close(self) -> None:
        """Ends the thread, after the model that it is loading. Can be called twice."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join(SHUTDOWN_SECONDS)
        with self._changed:
            unused = [*(slot.loaded for slot in self._slots), self._earlier and self._earlier[1]]
            self._embedder.loaded = self._fallback.loaded = self._reranker.loaded = self._earlier = None
        for model in unused:
            release(model)

    def current(self, settings: Settings) -> Models:
        """The models for a call with these settings. Never waits: missing models are loaded in the background."""
        with self._changed:
            self._configure(settings)
            if self._embedder.drop_changed() | self._reranker.drop_changed():
                self._gave_up = True
                self._note_change()
            embedder, fallback, reranker = self._embedder.loaded, self._fallback.loaded, self._reranker.loaded
            earlier = self._earlier and _limited(self._earlier[1], self._earlier[0].settings.embeddings_languages)
            states = _state(self._embedder, settings), _state(self._reranker, settings)
            fallback_state = _state(self._fallback, settings)
        embedder, reranker = _limited(embedder, settings.embeddings_languages), _limited(reranker, settings.reranker_languages)
        return Models(embedder, reranker, *states, earlier=earlier, fallback=fallback, fallback_state=fallback_state)

    def configure(self, settings: Settings) -> None:
        """Starts loading what new settings name. `current` does so too; call this to not wait for the next call."""
        with self._changed:
            self._configure(settings)

    def retire_earlier(self, unneeded: Embedder) -> None:
        """Releases this earlier embedder or fallback, once every persona's vectors exist in the generation of another. It may be in use again."""
        with self._changed:
            if self._earlier and self._earlier[1].generation == unneeded.generation:
                self._put_away(self._earlier[1])
                self._earlier = None
            elif self._fallback.loaded is unneeded and self._embedder.loaded:
                self._stop_fallback()
            else:
                return
            self._note_change()

    def gave_up(self) -> bool:
        """Whether a loaded model was given up since this was last asked. Its memory is free once nothing refers to it."""
        with self._changed:
            gave_up, self._gave_up = self._gave_up, False
            return gave_up

    def _put_away(self, model: object) -> None:
        release(model)
        self._gave_up |= model is not None

    def _configure(self, settings: Settings) -> None:
        if settings is self._settings:
            return
        self._settings = settings
        embedder, reranker = embedder_spec(settings), reranker_spec(settings)
        if embedder != self._embedder.spec:
            self._change_embedder(embedder)
            self._note_change()
        if self._fallback.spec and self._fallback.spec != fallback_spec(settings):
            self._stop_fallback()
            self._note_change()
        self._replace_absent()
        if reranker != self._reranker.spec:
            self._put_away(self._reranker.loaded)
            self._reranker.change(reranker)
            self._note_change()

    def _change_embedder(self, spec: ModelSpec | None) -> None:
        """Keeps the loaded embedder as the earlier one, unless there is one already: most indexes are still of that one's generation."""
        loaded = (self._embedder.spec, self._embedder.loaded)
        kept = [self._earlier] if self._earlier else []
        if loaded[0] and loaded[1]:
            kept.append((loaded[0], loaded[1]))
        reused = next((model for kept_spec, model in kept if kept_spec == spec), None)
        if reused is None and spec is not None and self._fallback.spec == spec:
            reused = self._fallback.loaded
            self._fallback.change(None)
        others = [pair for pair in kept if pair[0] != spec]
        self._earlier = others[0] if spec and others else None
        for pair in others:
            if pair is not self._earlier:
                self._put_away(pair[1])
        self._embedder.change(spec, reused)

    def _replace_absent(self) -> None:
        """Has the fallback loaded once the configured embedder is known to be absent; without one, nothing takes its place."""
        if self._embedder.absent:
            self._want_fallback()
        if self._embedder.absent and self._earlier and (self._fallback.spec is None or self._fallback.absent):
            self._put_away(self._earlier[1])
            self._earlier = None
            self._note_change()
        if self._embedder.loaded and self._fallback.to_load:
            self._stop_fallback()

    def _want_fallback(self) -> None:
        wanted = fallback_spec(self._settings) if self._settings else None
        if wanted is None or self._fallback.spec:
            return
        self._fallback.change(wanted)
        if self._earlier and self._earlier[0] == wanted:
            self._fallback.change(wanted, self._earlier[1])
            self._earlier = None
            _log_fallback(wanted)
        self._note_change()

    def _stop_fallback(self) -> None:
        self._put_away(self._fallback.loaded)
        self._fallback.change(None)

    def _note_change(self) -> None:
        self._unreported_change = True
        self._changed.notify_all()

    def _serve(self) -> None:
        while self._wait_for_work():
            self._load(self._embedder)
            self._load(self._fallback)
            self._load(self._reranker)
            self._measure(self._embedder)
            self._measure(self._fallback)
            self._report_change()

    def _wait_for_work(self) -> bool:
        """Waits until there is something to do; False once the registry is closed."""
        with self._changed:
            while not self._closed:
                retry_times = [slot.retry_at for slot in self._slots if slot.to_load or slot.to_measure]
                pause = min(retry_times, default=float("inf")) - time.monotonic()
                if pause <= 0 or self._unreported_change:
                    return True
                self._changed.wait(pause if retry_times else None)
            return False

    def _load(self, slot: ModelSlot[Model]) -> None:
        """Makes one attempt, if one is due."""
        with self._changed:
            spec = slot.spec
            if self._closed or spec is None or not slot.to_load or slot.retry_at > time.monotonic():
                return
        started = time.monotonic()
        result = slot.attempt(spec, self._loading)
        with self._changed:
            installed = not self._closed and slot.settle(spec, result, time.monotonic())
            guessed = _state(slot, self._settings or spec.settings).guessed
            if installed:
                self._drop_equal_earlier()
                self._unreported_change = True
            if not self._closed:
                self._replace_absent()
        if installed:
            logger.info("%s %s is loaded (%.1f s)", slot.role, spec.name, time.monotonic() - started)
            if slot is self._fallback:
                _log_fallback(spec)
            if guessed:
                logger.warning("%s %s is used with %s", slot.role, spec.name, guessed)
            self._report_change()  # at once: the other model may take long
        elif not isinstance(result, str):
            release(result)  # no longer configured

    def _measure(self, slot: ModelSlot[Embedder]) -> None:
        """Measures a model that did not answer when it was loaded, if an attempt is due."""
        with self._changed:
            model: Any = slot.loaded
            if self._closed or not slot.to_measure or slot.retry_at > time.monotonic():
                return
        is_measured = model.measure()
        with self._changed:
            if slot.loaded is model:
                slot.put_off(time.monotonic())
            self._unreported_change |= is_measured
        if is_measured:
            logger.info("%s %s has been measured", slot.role, model.name)

    def _loading(self, spec: ModelSpec) -> None:
        with self._changed:
            for slot in self._slots:
                slot.loading(spec)
            is_wanted_now = spec == self._embedder.spec and self._earlier is None
        if is_wanted_now and self._embedder.loader.is_far(spec.settings):  # a download may take long
            with self._changed:
                self._want_fallback()
            self._load(self._fallback)

    def _drop_equal_earlier(self) -> None:
        """After a change that kept the generation, such as of the device, the earlier embedder is not needed."""
        if self._earlier and self._embedder.loaded and self._earlier[1].generation == self._embedder.loaded.generation:
            self._put_away(self._earlier[1])
            self._earlier = None

    def _report_change(self) -> None:
        with self._changed:
            changed, self._unreported_change = self._unreported_change and not self._closed, False
        if changed and self._on_change:
            try:
                self._on_change()
            except Exception:
                logger.exception("the callback for changed models failed")


def _limited(model: Model | None, languages: Sequence[str] | None) -> Model | None:
    return model if model is None or languages is None else limited(model, languages)


def _log_fallback(spec: ModelSpec) -> None:
    logger.warning("%s answers in place of the embedder that is absent, as embeddings_fallback says", spec.name)


def _state(slot: ModelSlot[Model], settings: Settings) -> ModelState:
    languages = {"embedder": settings.embeddings_languages, "reranker": settings.reranker_languages}
    return slot.state(languages_set=languages.get(slot.role) is not None)
