"""One place on the shelf: which model is wanted there, whether it is loaded, and why not."""

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar, runtime_checkable

from memory_mcp.config.settings import Settings
from memory_mcp.encoders.protocols import Embedder, ModelState, Reranker
from memory_mcp.errors import MemoryMCPError

Model = TypeVar("Model", bound=Embedder | Reranker)

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Loader(Generic[Model]):
    """How a kind of model is had. `why_absent` is quick and imports no torch; `load` is asked only when it answers None.

    Both may raise anything: the model is absent then, and the error says why.
    """

    why_absent: Callable[[Settings], str | None]
    load: Callable[[Settings], Model]


@dataclass(frozen=True, slots=True)
class Wish:
    """A model that is wanted. Two wishes are equal when one loaded model fulfils both."""

    name: str
    key: tuple[str | None, ...]
    settings: Settings = field(compare=False, repr=False)


@runtime_checkable
class Closable(Protocol):
    """A model that holds more than memory."""

    def close(self) -> None:
        """Lets it go without waiting for anything. May be called twice."""


def embedder_wish(settings: Settings) -> Wish | None:
    """The embedder that is wanted; None for none on purpose."""
    name = settings.embeddings_model
    arguments = json.dumps(settings.embeddings_arguments, sort_keys=True, default=str)
    key = (name, settings.embeddings_device, settings.embeddings_class, arguments)
    return Wish(name, key if settings.embeddings_class else (*key, *_runner(settings)), settings) if name else None


def reranker_wish(settings: Settings) -> Wish | None:
    """The reranker that is wanted; None for none on purpose."""
    name = settings.reranker_model
    return Wish(name, (name, settings.embeddings_device, *_runner(settings)), settings) if name else None


def _runner(settings: Settings) -> tuple[str, ...]:
    """What runs a local model: another one, or another precision, is another loaded model."""
    return (settings.inference_backend, settings.onnx_precision) if settings.inference_backend == "onnx" else (settings.inference_backend,)


def release(model: object) -> None:
    """Closes what can be closed; the rest is memory."""
    if isinstance(model, Closable):
        model.close()


class Slot(Generic[Model]):
    """Its owner guards it with a lock, except for `attempt`, which takes long."""

    def __init__(self, what: str, loader: Loader[Model], retry_seconds: tuple[float, ...]) -> None:
        self.what = what
        self.wish: Wish | None = None
        self.loaded: Model | None = None
        self.retry_at = 0.0
        self._loader = loader
        self._retry_seconds = retry_seconds
        self._failures = 0
        self._error: str | None = None
        self._logged: str | None = None
        self._broken = False

    @property
    def to_load(self) -> bool:
        """Whether a model is wanted and not there."""
        return self.wish is not None and self.loaded is None

    def state(self) -> ModelState:
        """What is said of it."""
        if self.wish is None:
            return ModelState("off")
        if self.loaded is None:
            return ModelState("absent" if self._error else "loading", self.wish.name, error=self._error)
        return ModelState("loaded", self.wish.name, getattr(self.loaded, "dimension", None))

    def change(self, wish: Wish | None, loaded: Model | None = None) -> None:
        """Wants another model, which may be loaded already."""
        self.wish, self.loaded = wish, loaded
        self._failures, self._error, self.retry_at = 0, None, 0.0
        self._logged, self._broken = None, False

    def attempt(self, wish: Wish, on_loading: Callable[[Wish], None]) -> Model | str:
        """The model, or the sentence that says why it can't be had. Called without the lock, and takes as long as it takes."""
        try:
            absent = self._loader.why_absent(wish.settings)
            if absent:
                self._broken = False
                return absent
            if not self._broken:  # else it stays absent, and its error visible, until it can be loaded
                on_loading(wish)
            return self._loader.load(wish.settings)
        except MemoryMCPError as error:
            self._broken = True
            return str(error)
        except BaseException as error:  # the top of the loading thread: libraries raise what they like, and panic, at broken models
            self._broken = True
            logger.debug("the %s %s could not be loaded", self.what, wish.name, exc_info=True)
            return in_plain_words(wish.name, error)

    def loading(self, wish: Wish) -> None:
        """It is there, and is being loaded."""
        if wish == self.wish:
            self._error = None

    def settle(self, wish: Wish, got: Model | str, now: float) -> bool:
        """Takes what `attempt` brought, if that is still wanted; whether a model came in."""
        if wish != self.wish:
            return False
        if not isinstance(got, str):
            self.loaded, self._error, self._failures = got, None, 0
            return True
        if got != self._logged:
            logger.warning("%s: %s", self.what, got)
        self._error = self._logged = got
        self.retry_at = now + self._retry_seconds[min(self._failures, len(self._retry_seconds) - 1)]
        self._failures += 1
        return False


def in_plain_words(name: str, error: BaseException) -> str:
    """What to tell of an error that a library raised while it loaded a model."""
    said = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    if isinstance(error, MemoryError) or "out of memory" in said.lower() or "can't allocate memory" in said.lower():
        return f"{name} can't be loaded: there is not enough memory for it. Free some, choose a smaller model, or set it to null."
    return (
        f"{name} can't be loaded: {type(error).__name__}: {said.rstrip('.')}. "
        "See `memory-mcp models check`; a damaged copy is mended by removing it and `memory-mcp models download`."
    )
