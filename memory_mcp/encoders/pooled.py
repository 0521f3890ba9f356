"""What an embedder and a reranker share: they call a model through the worker pool, with batches of texts of similar length.

A call pads every text to the longest, so that mixed lengths waste time. And a running call can't be stopped: eight texts of
2,000 characters would occupy a worker for five seconds and gain nothing over eight calls.
"""

import threading
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from memory_mcp.encoders.cache import Caches
from memory_mcp.encoders.failures import CircuitBreaker, LogThrottle
from memory_mcp.encoders.model_families import Traits
from memory_mcp.encoders.worker_pool import ModelPool

Key = TypeVar("Key")

MAX_CHARACTERS = 2_000
MAX_CHARACTERS_PER_TOKEN = 8  # average over a text; English has four, Japanese two


class Pooled:
    """A model and the pool that calls it. `backend` is what runs it, if the configuration does not say that."""

    def __init__(
        self, model: Any, name: str, pool: ModelPool, caches: Caches, traits: Traits, breaker: CircuitBreaker | None, *, owns_pool: bool
    ) -> None:
        """With `owns_pool`, as for a model that runs elsewhere, the pool is closed here, and the model's connection."""
        self.name, self.traits = name, traits
        self.backend: str | None = None
        self._model, self._pool, self._caches, self._owns_pool = model, pool, caches, owns_pool
        self._breaker = breaker or CircuitBreaker()
        self._log = LogThrottle()
        self._guard = threading.Lock()

    def covers(self, text: str) -> bool:
        """Decided by the model's own languages."""
        return self.traits.covers(text)

    @property
    def changed(self) -> bool:
        """Whether another model answers now where this one ran, so that it must be loaded again."""
        return getattr(self._model, "changed", False)

    def close(self) -> None:
        """Stops taking calls, if the pool is its own."""
        if self._owns_pool:
            self._pool.close(wait=False)
            getattr(self._model, "disconnect", lambda: None)()


def batches_by_length(texts: Mapping[Key, str], size: int, characters: int = MAX_CHARACTERS) -> Iterator[list[Key]]:
    """The keys, longest text first, in batches of at most `size` texts and `characters` characters after padding. A long text is a batch of its own."""
    batch: list[Key] = []
    longest = 0
    for key in sorted(texts, key=lambda key: -len(texts[key])):
        if batch and (len(batch) == size or longest * (len(batch) + 1) > characters):
            yield batch
            batch = []
        longest = len(texts[key]) if not batch else longest
        batch.append(key)
    if batch:
        yield batch


def model_input(text: str, max_tokens: int | None) -> str:
    """A text that a tokenizer accepts: an unpaired surrogate would make the whole batch fail. Text far beyond the limit is
    removed first, because it would be tokenized and then cut off.
    """
    shortened = text[: max_tokens * MAX_CHARACTERS_PER_TOKEN] if max_tokens else text
    return shortened.encode("utf-8", "replace").decode("utf-8")
