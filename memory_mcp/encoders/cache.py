"""Caches of model results, with keys made from the whole text, never from a memory's key or a persona.

A cached result is therefore exactly what the model would return again, and no persona can see data of another through it. Keys hold
a digest instead of the text: they are small, and no content stays here after it has been erased.
"""

import hashlib
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from memory_mcp.encoders.models import Vectors

Key = TypeVar("Key")
Value = TypeVar("Value")

QUERY_VECTORS = 4_096
DOCUMENT_VECTORS = 8_192  # 8 MB at 256 dimensions: texts that are embedded again were mostly imported or rebuilt a moment ago
PAIR_SCORES = 65_536


class LruCache(Generic[Key, Value]):
    """Keeps the `capacity` most recently used entries. Thread-safe."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._entries: OrderedDict[Key, Value] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Key) -> Value | None:
        """The cached value, which becomes the most recently used; None if there is none."""
        with self._lock:
            if key not in self._entries:
                return None
            self._entries.move_to_end(key)
            return self._entries[key]

    def put(self, key: Key, value: Value) -> None:
        """Stores a value and, over capacity, drops the least recently used one."""
        with self._lock:
            self._entries[key] = value
            self._entries.move_to_end(key)
            if len(self._entries) > self.capacity:
                self._entries.popitem(last=False)

    def clear(self) -> None:
        """Drops all entries."""
        with self._lock:
            self._entries.clear()

    def __len__(self) -> int:
        return len(self._entries)


def digest(*texts: str) -> bytes:
    """A cache key: 128 bits of BLAKE2b over each text's own digest, so that (ab, c) and (a, bc) differ."""
    whole = hashlib.blake2b(digest_size=16)
    for text in texts:
        whole.update(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest())
    return whole.digest()


@dataclass(frozen=True, slots=True)
class Caches:
    """One cache for each kind of result, so that a bulk import can't evict queries.

    Keys are digests of (generation, text), or of (reranker, query, text).
    """

    query_vectors: LruCache[bytes, Vectors] = field(default_factory=lambda: LruCache(QUERY_VECTORS))
    document_vectors: LruCache[bytes, Vectors] = field(default_factory=lambda: LruCache(DOCUMENT_VECTORS))
    scores: LruCache[bytes, float] = field(default_factory=lambda: LruCache(PAIR_SCORES))

    def clear(self) -> None:
        """Empties all caches, for example after memories have been erased for good."""
        for cache in (self.query_vectors, self.document_vectors, self.scores):
            cache.clear()
