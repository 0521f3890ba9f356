"""The cache of open indexes of all personas: loaded on first use, evicted when together they grow too large."""

import threading
from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from memory_mcp.store.sqlite.database import Database
from memory_mcp.store.vectors import index_files
from memory_mcp.store.vectors.faiss_index import VectorIndex

LIMIT_BYTES = 512 * 1024 * 1024

Key = tuple[Path, str]


@dataclass(slots=True)
class _Entry:
    """`index` is None until the first caller has loaded it; others wait for `lock`. `of` identifies the database file it belongs to."""

    of: tuple[int, int] | None
    index: VectorIndex | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


class IndexCache:
    """Indexes by persona and generation. All callers share one object per index.

    An index that is evicted unsaved only has to catch up when it is next loaded: no reader waits for a save.
    """

    def __init__(self, limit_bytes: int = LIMIT_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._entries: OrderedDict[Key, _Entry] = OrderedDict()
        self._guard = threading.Lock()
        self._file_locks: dict[Path, threading.Lock] = {}
        self._makers: dict[Path, threading.RLock] = {}
        self._repaired: dict[Path, str] = {}

    def get(self, database: Database, generation: str) -> VectorIndex | None:
        """The index of a persona, loaded if necessary. None if this generation no longer serves searches.

        Raises:
            StoreError: the database can't be read.
        """
        key = _key(database, generation)
        with self._guard:
            entry = self._entries.get(key)
            if entry is None or entry.of != database.file_id:  # the database file was replaced by another
                entry = self._entries[key] = _Entry(database.file_id)
            self._entries.move_to_end(key)
        # The entry is cached before the load reads the database, so that a change committed later finds it.
        with entry.lock:
            if entry.index is None:
                with self._files_of(database):
                    entry.index = index_files.load(database, generation, lambda reason: self._note_repair(database, reason))
            index = entry.index
        if index is None:
            self._discard(key, entry)
        self._evict(keep=key)
        return index

    def opened(self, database: Database, generation: str) -> VectorIndex | None:
        """The index if it is open or being loaded. If None, a later load sees everything committed by now."""
        with self._guard:
            entry = self._entries.get(_key(database, generation))
        if entry is None or entry.of != database.file_id:
            return None
        with entry.lock:
            return entry.index

    def put(self, database: Database, index: VectorIndex) -> None:
        """Cache a new index, in place of an older one of its generation."""
        key = _key(database, index.generation)
        with self._guard:
            self._entries[key] = _Entry(database.file_id, index)
        self._evict(keep=key)

    def save(self, database: Database, index: VectorIndex) -> None:
        """Save an index, while no other index file of this persona is read or written.

        Raises:
            StoreReadOnly: the file can't be written.
        """
        with self._files_of(database):
            index_files.save(index, database)

    def set_aside_unusable(self, database: Database, generation: str) -> None:
        """Before a new file is written: keep an unusable one under another name, and remember why."""
        with self._files_of(database):
            reason = index_files.set_aside_unusable(database, generation)
        if reason:
            self._note_repair(database, reason)

    def making(self, database: Database) -> threading.RLock:
        """The lock to hold from reading the database for a new index until that is cached and saved: what is erased in between would
        come back with it."""
        with self._guard:
            return self._makers.setdefault(database.path.parent, threading.RLock())

    def erase(self, database: Database, chunks: Collection[int]) -> None:
        """Remove deleted chunks from every open index of a persona, and delete index files that may contain them.

        Raises:
            StoreReadOnly: the directory can't be written.
        """
        with self.making(database):
            with self._guard:
                entries = [entry for key, entry in self._entries.items() if key[0] == database.path.parent]
            for entry in entries:
                with entry.lock:  # a load in progress reads the file that is deleted below
                    if entry.index is not None:
                        entry.index.remove(chunks)
                        entry.index.saved_revision = -1
            with self._files_of(database):
                index_files.remove_files(database)

    def repaired(self) -> dict[Path, str]:
        """Persona directory → why its index file was set aside and rebuilt since the start."""
        with self._guard:
            return dict(self._repaired)

    def drop(self, database: Database, keep: str | None = None) -> None:
        """Evict a persona's indexes, except that of the generation `keep`."""
        with self._guard:
            for key in [key for key in self._entries if key[0] == database.path.parent and key[1] != keep]:
                del self._entries[key]

    def forget(self, directory: Path) -> None:
        """Drop everything about a directory that was removed or now belongs to another persona."""
        with self._guard:
            for key in [key for key in self._entries if key[0] == directory]:
                del self._entries[key]
            for known in (self._file_locks, self._makers, self._repaired):
                known.pop(directory, None)

    def dirty(self) -> set[Path]:
        """The directories of personas with unsaved changes in an open index."""
        with self._guard:
            return {directory for (directory, _), entry in self._entries.items() if entry.index is not None and entry.index.dirty}

    @property
    def size_bytes(self) -> int:
        """The approximate memory of the open indexes."""
        with self._guard:
            return sum(entry.index.size_bytes for entry in self._entries.values() if entry.index is not None)

    def _discard(self, key: Key, entry: _Entry) -> None:
        with self._guard:
            if self._entries.get(key) is entry:
                del self._entries[key]

    def _evict(self, keep: Key) -> None:
        """Evict the least recently used indexes until the rest fits, saved ones first; never `keep`."""
        with self._guard:
            loaded = {key: entry.index for key, entry in self._entries.items() if entry.index is not None}
            surplus = sum(index.size_bytes for index in loaded.values()) - self._limit_bytes
            for key in sorted(loaded, key=lambda key: loaded[key].dirty):
                if surplus <= 0:
                    return
                if key != keep:
                    surplus -= loaded[key].size_bytes
                    del self._entries[key]

    def _note_repair(self, database: Database, reason: str) -> None:
        with self._guard:
            self._repaired[database.path.parent] = reason

    def _files_of(self, database: Database) -> threading.Lock:
        with self._guard:
            return self._file_locks.setdefault(database.path.parent, threading.Lock())


def _key(database: Database, generation: str) -> Key:
    return database.path.parent, generation
