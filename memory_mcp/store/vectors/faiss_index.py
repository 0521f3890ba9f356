"""The FAISS index over one generation of one persona's vectors: exact search by chunk id. The only module that imports faiss.

It is a cache of the table of vectors and can be rebuilt in a fraction of a second, so a saved index is never trusted unchecked.
"""

import hashlib
import itertools
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO

import numpy as np

from memory_mcp.store.vectors.nearness import means_near, normalised
from memory_mcp.store.vectors.stored_vectors import Ids, Matrix

# Besides its components, each vector costs an id in three tables: two of FAISS, one of ours.
OVERHEAD_BYTES = 150
# How many vectors are looked at for what they share, and by which share the index may grow until they are looked at again.
SAMPLE, SAME_GROWTH = 2_000, 0.05
IO_BYTES = 1 << 20


def _faiss() -> Any:
    # Only a server with a model pays for this import: 0.1 s and 15 MB.
    import faiss  # noqa: PLC0415

    # Set in each calling thread: OpenMP would split even a single query, and its threads spin while another process has the core.
    # Measured with 20,000 vectors: 1.0 ms on one thread, 1.5 on two idle cores, 24 on two busy ones.
    faiss.omp_set_num_threads(1)
    return faiss


class VectorIndex:
    """Vectors by chunk id. Searches run in parallel; changes are exclusive and take precedence over later searches.

    `change` is the number of the last change of the table that the index includes. `revision` counts the changes of this object;
    `saved_revision` is that of its file.
    """

    def __init__(self, generation: str, change: int = 0) -> None:
        self.generation = generation
        self.change = change
        self.revision = 0
        self.saved_revision = -1
        self._faiss_index: Any = None  # created by the first vector, which determines the dimension
        self._ids: set[int] = set()
        self._means: tuple[int, Matrix, Matrix] | None = None
        self._lock = _ReadWriteLock()

    @property
    def count(self) -> int:
        return len(self._ids)

    @property
    def dimension(self) -> int:
        """The length of a vector; 0 while the index is empty."""
        return self._faiss_index.d if self._faiss_index is not None else 0

    def means_near(self, points: Matrix) -> Matrix:
        """`nearness.means_near` of a sample of the vectors, kept while the index hardly grows."""
        if self._means and self._means[1] is points and abs(self.count - self._means[0]) <= SAME_GROWTH * self._means[0]:
            return self._means[2]
        step = max(1, self.count // SAMPLE)
        with self._lock.reading():
            sampled = list(itertools.islice(self._ids, 0, None, step))
        _, vectors = self.reconstruct(sampled)
        means = means_near(vectors, points, step) if sampled else points
        self._means = self.count, points, means
        return means

    @property
    def size_bytes(self) -> int:
        return self.count * (self.dimension * 4 + OVERHEAD_BYTES)

    @property
    def dirty(self) -> bool:
        """Whether the saved file is missing or older."""
        return self.revision != self.saved_revision

    def ids(self) -> Ids:
        """The chunks of the index, in order."""
        with self._lock.reading():
            return np.array(sorted(self._ids), np.int64)

    def search(self, vector: Matrix, k: int, among: Collection[int] | None = None) -> list[tuple[int, float]]:
        """(chunk id, cosine) of the nearest `k`, the nearest first; only of the chunks `among`, if given."""
        with self._lock.reading():
            if not self._ids or k < 1 or (among is not None and not among):
                return []
            params = None
            faiss = _faiss()
            if among is not None:
                params = faiss.SearchParameters(sel=faiss.IDSelectorBatch(np.fromiter(among, np.int64, len(among))))
            cosines, labels = self._faiss_index.search(normalised(vector.reshape(1, -1)), min(k, self.count), params=params)
        return [(int(chunk), float(cosine)) for chunk, cosine in zip(labels[0], cosines[0], strict=True) if chunk >= 0]

    def scores(self, vector: Matrix, chunks: Collection[int]) -> dict[int, float]:
        """Chunk → cosine, for those of these chunks that the index contains, on the scale of `search`."""
        known, vectors = self.reconstruct(chunks)
        return dict(zip(known, (vectors @ normalised(vector.reshape(1, -1))[0]).tolist(), strict=True)) if known else {}

    def reconstruct(self, chunks: Collection[int]) -> tuple[list[int], Matrix]:
        """Those of these chunks that the index contains, and their vectors, of shape (count, dimension)."""
        with self._lock.reading():
            known = [chunk for chunk in dict.fromkeys(chunks) if chunk in self._ids]
            if not known:
                return [], np.empty((0, self.dimension), np.float32)
            _faiss()
            return known, self._faiss_index.reconstruct_batch(np.array(known, np.int64))

    def add(self, chunks: Sequence[int] | Ids, vectors: Matrix) -> None:
        """Add vectors. A chunk that the index contains stays as it is: the text of a chunk never changes, a new text gets a new chunk.

        Raises:
            ValueError: the vectors have another dimension than the index.
        """
        if not len(chunks):
            return
        if self.dimension not in {0, vectors.shape[1]}:
            raise ValueError(f"vectors of length {vectors.shape[1]} for an index of length {self.dimension}")
        ids = np.asarray(chunks, np.int64)
        with self._lock.writing():
            faiss = _faiss()
            if self._faiss_index is None:
                self._faiss_index = faiss.IndexIDMap2(faiss.IndexFlatIP(vectors.shape[1]))
            fresh = np.array([chunk not in self._ids for chunk in ids.tolist()])
            if fresh.any():
                self._faiss_index.add_with_ids(normalised(vectors[fresh]), ids[fresh])
                self._ids.update(ids[fresh].tolist())
                self.revision += 1

    def remove(self, chunks: Collection[int]) -> int:
        """Remove chunks in one pass, since each pass reads the whole index. Returns how many the index contained."""
        with self._lock.writing():
            held = self._ids.intersection(chunks)
            if held:
                _faiss()
                self._faiss_index.remove_ids(np.fromiter(held, np.int64, len(held)))
                self._ids.difference_update(held)
                self.revision += 1
        return len(held)

    def write_to(self, file: BinaryIO) -> tuple[int, str, int]:
        """Write the index. Returns the revision written, the SHA-256 of the bytes, and the number of vectors."""
        digest = hashlib.sha256()

        def take(piece: bytes) -> int:
            digest.update(piece)
            return file.write(piece)

        faiss = _faiss()
        with self._lock.reading():
            faiss.write_index(self._faiss_index or faiss.IndexIDMap2(faiss.IndexFlatIP(0)), faiss.PyCallbackIOWriter(take, IO_BYTES))
            return self.revision, digest.hexdigest(), self.count

    @classmethod
    def read_from(cls, file: BinaryIO, generation: str, change: int) -> "VectorIndex":
        """Read what `write_to` wrote. Only for bytes whose checksum was verified: FAISS doesn't check what it reads.

        Raises:
            ValueError: the bytes aren't such an index.
        """
        faiss = _faiss()
        read: Callable[[int], bytes] = file.read
        try:
            stored = faiss.read_index(faiss.PyCallbackIOReader(read, IO_BYTES))
        except RuntimeError as error:
            raise ValueError("FAISS can't read it") from error
        inner = faiss.downcast_index(stored.index) if type(stored) is faiss.IndexIDMap2 else None
        if type(inner) is not faiss.IndexFlatIP:
            raise ValueError(f"it holds a {type(stored).__name__} of another kind")
        index = cls(generation, change)
        index._ids = set(faiss.vector_to_array(stored.id_map).tolist())
        index._faiss_index = stored if index._ids else None
        index.saved_revision = index.revision
        return index


class _ReadWriteLock:
    """Many readers or one writer. Waiting writers have precedence, or continuous searches would block every change."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._readers = 0
        self._writers = 0
        self._writing = False

    @contextmanager
    def reading(self) -> Iterator[None]:
        with self._condition:
            self._condition.wait_for(lambda: not self._writers)
            self._readers += 1
        try:
            yield
        finally:
            with self._condition:
                self._readers -= 1
                self._condition.notify_all()

    @contextmanager
    def writing(self) -> Iterator[None]:
        with self._condition:
            self._writers += 1
            self._condition.wait_for(lambda: not (self._readers or self._writing))
            self._writing = True
        try:
            yield
        finally:
            with self._condition:
                self._writers -= 1
                self._writing = False
                self._condition.notify_all()
