"""The embedder's or the reranker's slot in the registry: which model is configured, whether it is loaded, and if not, why."""

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from memory_mcp.config.settings import Settings
from memory_mcp.encoders.failures import load_error
from memory_mcp.encoders.model_families import Traits
from memory_mcp.encoders.models import Embedder, ModelState, Reranker
from memory_mcp.errors import MemoryMCPError

Model = TypeVar("Model", bound=Embedder | Reranker)

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Loader(Generic[Model]):
    """How one kind of model is loaded. `why_missing` is fast and imports no torch; `load` is called only if it returns None. `is_far` tells of a model
    that is there whether it has to be downloaded first.

    All may raise any exception: the model is absent then, with the error as the reason.
    """

    why_missing: Callable[[Settings], str | None]
    load: Callable[[Settings], Model]
    is_far: Callable[[Settings], bool] = lambda _: False


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A configured model. Two specs are equal if one loaded model satisfies both."""

    name: str
    key: tuple[str | None, ...]
    settings: Settings = field(compare=False, repr=False)


@runtime_checkable
class Closable(Protocol):
    """A model that holds more than memory."""

    def close(self) -> None:
        """Releases its resources without waiting. Can be called twice."""


def embedder_spec(settings: Settings) -> ModelSpec | None:
    """The configured embedder; None if it is configured as null."""
    name = settings.embeddings_model
    arguments = json.dumps(settings.embeddings_arguments, sort_keys=True, default=str)
    if name is None:
        return None
    if settings.embeddings_url:
        return ModelSpec(name, (name, settings.embeddings_url, settings.embeddings_api), settings)
    key = (name, settings.embeddings_device, settings.embeddings_class, arguments)
    return ModelSpec(name, key if settings.embeddings_class else (*key, *_backend(settings)), settings)


def fallback_spec(settings: Settings) -> ModelSpec | None:
    """The embedder that takes the place of an absent one, which runs here; None if there is to be none, or if it is the configured one itself."""
    name, device = settings.embeddings_fallback, settings.embeddings_device
    if name is None or settings.embeddings_model is None:
        return None
    # Better on the processor than not at all.
    here: dict[str, Any] = {"embeddings_model": name, "embeddings_device": "auto" if device == "cuda" else device}
    spec = embedder_spec(settings.model_copy(update={**here, "embeddings_class": None, "embeddings_arguments": {}, "embeddings_url": None}))
    return None if spec == embedder_spec(settings) else spec


def reranker_spec(settings: Settings) -> ModelSpec | None:
    """The configured reranker; None if it is configured as null."""
    name = settings.reranker_model
    if name is None:
        return None
    elsewhere = settings.reranker_url and (name, settings.reranker_url, settings.reranker_api)
    return ModelSpec(name, elsewhere or (name, settings.embeddings_device, *_backend(settings)), settings)


def _backend(settings: Settings) -> tuple[str, ...]:
    """The backend of a local model: another backend or precision needs another loaded model."""
    return (settings.inference_backend,) if settings.inference_backend == "torch" else (settings.inference_backend, settings.onnx_precision)


def release(model: object) -> None:
    """Closes a model that can be closed; others hold only memory."""
    if isinstance(model, Closable):
        model.close()


class ModelSlot(Generic[Model]):
    """Not thread-safe: the owner holds a lock, except during `attempt`, which takes long."""

    def __init__(self, role: str, loader: Loader[Model], retry_seconds: tuple[float, ...]) -> None:
        self.role = role
        self.spec: ModelSpec | None = None
        self.loaded: Model | None = None
        self.retry_at = 0.0
        self.loader = loader
        self._retry_seconds = retry_seconds
        self._failures = 0
        self._error: str | None = None
        self._logged: str | None = None
        self._broken = False

    @property
    def absent(self) -> bool:
        """Whether the configured model is known to be missing. Not while it is looked for or loaded."""
        return self.to_load and self._error is not None

    @property
    def to_load(self) -> bool:
        """Whether a model is configured and not loaded."""
        return self.spec is not None and self.loaded is None

    @property
    def to_measure(self) -> bool:
        """Whether a model is loaded that did not answer when it was measured."""
        return not getattr(self.loaded, "is_measured", True)

    def put_off(self, now: float) -> None:
        """Sets when the next attempt is due, after one more that failed."""
        self.retry_at = now + self._retry_seconds[min(self._failures, len(self._retry_seconds) - 1)]
        self._failures += 1

    def state(self, *, languages_set: bool = False) -> ModelState:
        """The state shown to callers. `languages_set`: config.json lists the model's languages."""
        if self.spec is None:
            return ModelState("off")
        if self.loaded is None:
            return ModelState("absent" if self.absent else "loading", self.spec.name, error=self._error)
        traits: Traits | None = getattr(self.loaded, "traits", None)
        return ModelState(
            "loaded",
            self.spec.name,
            getattr(self.loaded, "dimension", None),
            guessed=traits.guess(languages_set=languages_set) if traits else None,
            backend=getattr(self.loaded, "backend", None),
        )

    def drop_changed(self) -> bool:
        """Gives a model up that is no longer the one that was loaded, so that it is loaded again. Returns whether it was one."""
        if self.loaded is None or not getattr(self.loaded, "changed", False):
            return False
        release(self.loaded)
        self.change(self.spec)
        return True

    def change(self, spec: ModelSpec | None, loaded: Model | None = None) -> None:
        """Switches to another model, which may be loaded already."""
        self.spec, self.loaded = spec, loaded
        self._failures, self._error, self.retry_at = 0, None, 0.0
        self._logged, self._broken = None, False

    def attempt(self, spec: ModelSpec, on_loading: Callable[[ModelSpec], None]) -> Model | str:
        """Tries to load a model. Returns it, or a sentence with the reason why it can't be loaded. Call it without the lock."""
        try:
            reason = self.loader.why_missing(spec.settings)
            if reason:
                self._broken = False
                return reason
            if not self._broken:  # otherwise the state stays absent, with its error, until loading succeeds
                on_loading(spec)
            return self.loader.load(spec.settings)
        except MemoryMCPError as error:
            self._broken = True
            return str(error)
        except BaseException as error:  # the top of the loading thread: libraries raise any class for broken models, and panic
            self._broken = True
            logger.debug("the %s %s could not be loaded", self.role, spec.name, exc_info=True)
            return load_error(spec.name, error)

    def loading(self, spec: ModelSpec) -> None:
        """Marks the model as found and being loaded."""
        if spec == self.spec:
            self._error = None

    def settle(self, spec: ModelSpec, result: Model | str, now: float) -> bool:
        """Takes the result of `attempt`, unless the configuration has changed meanwhile. Returns whether a model was installed."""
        if spec != self.spec:
            return False
        if not isinstance(result, str):
            self.loaded, self._error, self._failures = result, None, 0
            self.put_off(now)
            return True
        if result != self._logged:
            logger.warning("%s: %s", self.role, result)
        self._error = self._logged = result
        self.put_off(now)
        return False
