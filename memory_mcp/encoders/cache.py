"""What the models have answered before. A key is made of the whole text, never of a memory's key or a persona.

So a cached answer is exactly what the model would say again, whoever asks, and nothing of one persona's can show in
another's. Keys hold a digest instead of the text: they stay small, and no content lingers here after it has been erased.
"""

import hashlib
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from memory_mcp.encoders.protocols import Vectors

Key = TypeVar("Key")
Value = TypeVar("Value")

QUERY_VECTORS = 4_096
DOCUMENT_VECTORS = 8_192  # 8 MB at 256 dimensions: what is embedded again is mostly what was imported or rebuilt just now
PAIR_SCORES = 65_536


class LruCache(Generic[Key, Value]):
    """The `capacity` entries used last. Safe to use from several threads."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._entries: OrderedDict[Key, Value] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Key) -> Value | None:
        """What is remembered, and is now the entry used last."""
        with self._lock:
            if key not in self._entries:
                return None
            self._entries.move_to_end(key)
            return self._entries[key]

    def put(self, key: Key, value: Value) -> None:
        """Remembers, and forgets the entry that was unused longest when there are too many."""
        with self._lock:
            self._entries[key] = value
            self._entries.move_to_end(key)
            if len(self._entries) > self.capacity:
                self._entries.popitem(last=False)

    def clear(self) -> None:
        """Forgets everything."""
        with self._lock:
            self._entries.clear()

    def __len__(self) -> int:
        return len(self._entries)


def digest(*texts: str) -> bytes:
    """A key that tells texts apart: 128 bits of BLAKE2b over each text's own digest, so that boundaries count."""
    whole = hashlib.blake2b(digest_size=16)
    for text in texts:
        whole.update(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest())
    return whole.digest()


@dataclass(frozen=True, slots=True)
class Caches:
    """One for each kind of answer, so that a bulk import can't push out what people ask.

    Keys are digests of (generation, text), or of (reranker, query, text).
    """

    query_vectors: LruCache[bytes, Vectors] = field(default_factory=lambda: LruCache(QUERY_VECTORS))
    document_vectors: LruCache[bytes, Vectors] = field(default_factory=lambda: LruCache(DOCUMENT_VECTORS))
    scores: LruCache[bytes, float] = field(default_factory=lambda: LruCache(PAIR_SCORES))

    def clear(self) -> None:
        """Forgets everything, such as after memories have been erased for good."""
        for cache in (self.query_vectors, self.document_vectors, self.scores):
            cache.clear()
