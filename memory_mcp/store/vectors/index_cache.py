"""The open indexes of all personas: loaded when they are first asked for, and put away when together they grow too large."""

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
class _Place:
    """`index` is None until the first reader has loaded it; the others wait at `lock`. `of` is the database file that it was made from."""

    of: tuple[int, int] | None
    index: VectorIndex | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


class IndexShelf:
    """Indexes by persona and generation. Everybody who wants one gets the same object.

    An index that is put away unsaved costs nothing but the catching up when it is next loaded: no reader waits for a save.
    """

    def __init__(self, limit_bytes: int = LIMIT_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._places: OrderedDict[Key, _Place] = OrderedDict()
        self._guard = threading.Lock()
        self._file_locks: dict[Path, threading.Lock] = {}
        self._makers: dict[Path, threading.RLock] = {}
        self._mended: dict[Path, str] = {}

    def get(self, database: Database, generation: str) -> VectorIndex | None:
        """The index of a persona, loaded if need be. None when this generation is no longer the one that answers.

        Raises:
            StoreError: the database can't be read.
        """
        key = _key(database, generation)
        with self._guard:
            place = self._places.get(key)
            if place is None or place.of != database.file_id:  # an index of a file that was replaced by another knows nothing
                place = self._places[key] = _Place(database.file_id)
            self._places.move_to_end(key)
        # The place stands on the shelf before the load looks at the database: a change that is committed later finds it there.
        with place.lock:
            if place.index is None:
                with self._files_of(database):
                    place.index = index_files.load(database, generation, lambda reason: self._note_mended(database, reason))
            index = place.index
        if index is None:
            self._clear(key, place)
        self._put_away(keep=key)
        return index

    def opened(self, database: Database, generation: str) -> VectorIndex | None:
        """The index if it is open (or is just being loaded). None: whoever loads it later sees what is committed by now."""
        with self._guard:
            place = self._places.get(_key(database, generation))
        if place is None or place.of != database.file_id:
            return None
        with place.lock:
            return place.index

    def put(self, database: Database, index: VectorIndex) -> None:
        """Puts a new index where readers find it, instead of the one of its generation that stood there."""
        key = _key(database, index.generation)
        with self._guard:
            self._places[key] = _Place(database.file_id, index)
        self._put_away(keep=key)

    def save(self, database: Database, index: VectorIndex) -> None:
        """Writes the file, while nobody reads or writes another of this persona.

        Raises:
            StoreReadOnly: it can't be written.
        """
        with self._files_of(database):
            index_files.save(index, database)

    def set_aside_unusable(self, database: Database, generation: str) -> None:
        """Before a new file is written: keeps one that can't be used, and notes why."""
        with self._files_of(database):
            reason = index_files.set_aside_unusable(database, generation)
        if reason:
            self._note_mended(database, reason)

    def making(self, database: Database) -> threading.RLock:
        """Hold it from reading the database for a new index until that stands on the shelf and on the disk: what is erased in
        between would come back with it."""
        with self._guard:
            return self._makers.setdefault(database.path.parent, threading.RLock())

    def erase(self, database: Database, chunks: Collection[int]) -> None:
        """Drops chunks that are gone from every open index of a persona, and what may hold them from the disk.

        Raises:
            StoreReadOnly: the directory can't be written.
        """
        with self._guard:
            places = {key: place for key, place in self._places.items() if key[0] == database.path.parent}
        with self.making(database):
            for place in places.values():
                with place.lock:  # whoever is loading it reads the file that is about to go
                    if place.index is not None:
                        place.index.remove(chunks)
                        place.index.saved_revision = -1
            with self._files_of(database):
                index_files.remove_files(database)

    def mended(self) -> dict[Path, str]:
        """The directories of the personas whose index file had to be set aside since the start, and why."""
        with self._guard:
            return dict(self._mended)

    def drop(self, database: Database, keep: str | None = None) -> None:
        """Puts a persona's indexes away, but for the one of the generation `keep`."""
        with self._guard:
            for key in [key for key in self._places if key[0] == database.path.parent and key[1] != keep]:
                del self._places[key]

    def forget(self, directory: Path) -> None:
        """Drops everything that is known of a persona's directory, which is no more or another's."""
        with self._guard:
            for key in [key for key in self._places if key[0] == directory]:
                del self._places[key]
            for known in (self._file_locks, self._makers, self._mended):
                known.pop(directory, None)

    def dirty(self) -> set[Path]:
        """The directories of the personas that have an open index with a change that its file lacks."""
        with self._guard:
            return {directory for (directory, _), place in self._places.items() if place.index is not None and place.index.dirty}

    @property
    def size_bytes(self) -> int:
        """What the open indexes take, roughly."""
        with self._guard:
            return sum(place.index.size_bytes for place in self._places.values() if place.index is not None)

    def _clear(self, key: Key, place: _Place) -> None:
        with self._guard:
            if self._places.get(key) is place:
                del self._places[key]

    def _put_away(self, keep: Key) -> None:
        """Drops the least recently used indexes until the rest fits, the saved ones first; never the one that was just asked for."""
        with self._guard:
            loaded = {key: place.index for key, place in self._places.items() if place.index is not None}
            surplus = sum(index.size_bytes for index in loaded.values()) - self._limit_bytes
            for key in sorted(loaded, key=lambda key: loaded[key].dirty):
                if surplus <= 0:
                    return
                if key != keep:
                    surplus -= loaded[key].size_bytes
                    del self._places[key]

    def _note_mended(self, database: Database, reason: str) -> None:
        with self._guard:
            self._mended[database.path.parent] = reason

    def _files_of(self, database: Database) -> threading.Lock:
        with self._guard:
            return self._file_locks.setdefault(database.path.parent, threading.Lock())


def _key(database: Database, generation: str) -> Key:
    return database.path.parent, generation
