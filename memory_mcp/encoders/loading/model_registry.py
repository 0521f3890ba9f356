"""The models that are loaded. They come in on a thread of the shelf's own, and a call takes what is there.

A model that can't be had never stops anything: its state becomes `absent` with a sentence, and it is tried again after
5 s, 10 s, … 5 min, so that one that appears later is picked up.
"""

import logging
import threading
import time
from collections.abc import Callable

from memory_mcp.config.settings import Settings
from memory_mcp.encoders.languages import EmbedderOfLanguages, RerankerOfLanguages
from memory_mcp.encoders.loading.model_slot import Loader, Model, Slot, Wish, embedder_wish, release, reranker_wish
from memory_mcp.encoders.models import Models
from memory_mcp.encoders.protocols import Embedder, Reranker

RETRY_SECONDS = (5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 300.0)
SHUTDOWN_SECONDS = 30.0

logger = logging.getLogger(__name__)


class ModelShelf:
    """Loads what the settings name. Made once by the composition root; `start` before the server runs, `close` after it."""

    def __init__(
        self,
        embedder_loader: Loader[Embedder],
        reranker_loader: Loader[Reranker],
        on_change: Callable[[], None] | None = None,
        retry_seconds: tuple[float, ...] = RETRY_SECONDS,
    ) -> None:
        """`on_change` is called on the shelf's thread after another model than before, or none, has come to answer."""
        self._embedder = Slot("embedder", embedder_loader, retry_seconds)
        self._reranker = Slot("reranker", reranker_loader, retry_seconds)
        self._earlier: tuple[Wish, Embedder] | None = None
        self._on_change = on_change
        self._untold = False  # something changed and `on_change` has not been called for it
        self._settings: Settings | None = None
        self._changed = threading.Condition()
        self._closed = False
        # A daemon, so that a download can't keep the process from ending. `close` waits for anything else.
        self._thread = threading.Thread(target=self._serve, name="model-shelf", daemon=True)

    def start(self, settings: Settings) -> None:
        """Begins to load what is wanted. Returns at once."""
        self.want(settings)
        self._thread.start()

    def close(self) -> None:
        """Ends the thread, after the model that it is just loading. May be called twice."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join(SHUTDOWN_SECONDS)
        with self._changed:
            away = [self._embedder.loaded, self._reranker.loaded, self._earlier and self._earlier[1]]
            self._embedder.loaded = self._reranker.loaded = self._earlier = None
        for model in away:
            release(model)

    def current(self, settings: Settings) -> Models:
        """The models for a call under these settings. Never waits for a model: what is missing comes in meanwhile."""
        with self._changed:
            self._want(settings)
            embedder, reranker = self._embedder.loaded, self._reranker.loaded
            earlier = self._earlier[1] if self._earlier else None
            states = self._embedder.state(), self._reranker.state()
        if settings.embeddings_languages is not None:
            embedder = embedder and EmbedderOfLanguages(embedder, settings.embeddings_languages)
        if settings.reranker_languages is not None:
            reranker = reranker and RerankerOfLanguages(reranker, settings.reranker_languages)
        return Models(embedder, reranker, *states, earlier=earlier)

    def want(self, settings: Settings) -> None:
        """What shall be loaded from now on. `current` does this too; call it for a change that must not wait for a call."""
        with self._changed:
            self._want(settings)

    def retire_earlier(self) -> None:
        """Lets the earlier embedder go, because every persona's vectors exist in the new generation."""
        with self._changed:
            earlier, self._earlier = self._earlier, None
        if earlier:
            release(earlier[1])

    def _want(self, settings: Settings) -> None:
        if settings is self._settings:
            return
        self._settings = settings
        embedder, reranker = embedder_wish(settings), reranker_wish(settings)
        if embedder != self._embedder.wish:
            self._change_embedder(embedder)
            self._tell()
        if reranker != self._reranker.wish:
            release(self._reranker.loaded)
            self._reranker.change(reranker)
            self._tell()

    def _change_embedder(self, wish: Wish | None) -> None:
        """What was loaded becomes the earlier one, unless one is kept already: most indexes are still of that one's making."""
        loaded = (self._embedder.wish, self._embedder.loaded)
        kept = [self._earlier] if self._earlier else []
        if loaded[0] and loaded[1]:
            kept.append((loaded[0], loaded[1]))
        again = next((model for wanted, model in kept if wanted == wish), None)
        others = [pair for pair in kept if pair[0] != wish]
        self._earlier = others[0] if wish and others else None
        for pair in others:
            if pair is not self._earlier:
                release(pair[1])
        self._embedder.change(wish, again)

    def _tell(self) -> None:
        self._untold = True
        self._changed.notify_all()

    def _serve(self) -> None:
        while self._turn():
            self._load(self._embedder)
            self._load(self._reranker)
            self._call_back()

    def _turn(self) -> bool:
        """Waits until there is something to do; False once the shelf is closed."""
        with self._changed:
            while not self._closed:
                waiting = [slot.retry_at for slot in (self._embedder, self._reranker) if slot.to_load]
                pause = min(waiting, default=float("inf")) - time.monotonic()
                if pause <= 0 or self._untold:
                    return True
                self._changed.wait(pause if waiting else None)
            return False

    def _load(self, slot: Slot[Model]) -> None:
        """One attempt, if it is time for one."""
        with self._changed:
            wish = slot.wish
            if self._closed or wish is None or not slot.to_load or slot.retry_at > time.monotonic():
                return
        began = time.monotonic()
        got = slot.attempt(wish, self._loading)
        with self._changed:
            came = not self._closed and slot.settle(wish, got, time.monotonic())
            if came:
                self._drop_equal_earlier()
                self._untold = True
        if came:
            logger.info("%s %s is loaded (%.1f s)", slot.what, wish.name, time.monotonic() - began)
            self._call_back()  # at once: the other model may take long
        elif not isinstance(got, str):
            release(got)  # nobody wants it any more

    def _loading(self, wish: Wish) -> None:
        with self._changed:
            self._embedder.loading(wish)
            self._reranker.loading(wish)

    def _drop_equal_earlier(self) -> None:
        """After a change that left the vectors as they were, such as of the device, there is nothing to wait for."""
        if self._earlier and self._embedder.loaded and self._earlier[1].generation == self._embedder.loaded.generation:
            release(self._earlier[1])
            self._earlier = None

    def _call_back(self) -> None:
        with self._changed:
            untold, self._untold = self._untold and not self._closed, False
        if untold and self._on_change:
            try:
                self._on_change()
            except Exception:
                logger.exception("what follows from a change of models failed")
