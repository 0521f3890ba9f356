"""`vector_store/`: the saved index of a persona and the manifest that it is held against. Whatever is wrong with them, SQLite mends it."""

import hashlib
import io
import json
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, cast

import apsw
import numpy as np

from memory_mcp.errors import StoreDamaged, StoreError, StoreReadOnly
from memory_mcp.store.files.durable_files import sync_directory
from memory_mcp.store.files.sealed import SealedReader, SealedWriter
from memory_mcp.store.sqlite.database import Database
from memory_mcp.store.vectors import stored_vectors
from memory_mcp.store.vectors.faiss_index import VectorIndex, normalised
from memory_mcp.store.vectors.stored_vectors import Ids

DIRECTORY_NAME = "vector_store"
INDEX_NAME = "index.faiss"
MANIFEST_NAME = "manifest.json"
FORMAT = 1
DAMAGED_KEPT = 2
# As many vectors, spread over the file and from its end, are compared with SQLite: a file of another timeline (a restored backup)
# can have the same ids. Comparing all of them costs what building anew does.
COMPARED_SPREAD, COMPARED_LATEST = 64, 64
TOLERANCE = 1e-5

logger = logging.getLogger(__name__)

Mended = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Manifest:
    """What the index file is, according to whoever wrote it. `persona` is the name of the persona's directory."""

    format: int
    persona: str
    generation: str
    dimension: int
    count: int
    change: int
    sha256: str


class _Unusable(Exception):
    """Why a saved index can't be used."""


def build(connection: apsw.Connection, generation: str) -> VectorIndex:
    """An index of what SQLite has now. Nothing is embedded."""
    index = VectorIndex(generation, stored_vectors.change_number(connection))
    try:
        for chunks, vectors in stored_vectors.pages(connection, generation):
            index.add(chunks, vectors)
    except ValueError as error:
        raise StoreDamaged(
            "stored vectors are of different lengths", str(error), "Stop the server, delete them from the table `vectors`, and start it"
        ) from error
    return index


def load(database: Database, generation: str, mended: Mended = lambda _reason: None) -> VectorIndex | None:
    """The saved index, held against SQLite and caught up with it; built from SQLite where there is none, or none that can be used.

    None when `generation` is no longer the one that answers: whoever wanted it has to begin again. `mended` hears why a file
    had to be set aside.

    Raises:
        StoreError: the database can't be read.
    """
    with database.read() as connection:
        if stored_vectors.serving_generation(connection) != generation:
            return None
        index, reason = _read(database, generation)
        if index is not None:
            reason = _difference(connection, index)
            if not reason:
                return index
        if reason:
            _set_aside(_directory(database), reason)
            mended(reason)
        return build(connection, generation)


def set_aside_unusable(database: Database, generation: str) -> str:
    """Keeps a file that can't be used from being overwritten by the next save. Returns why it can't; empty where all is well."""
    _, reason = _read(database, generation)
    if reason:
        _set_aside(_directory(database), reason)
    return reason


def save(index: VectorIndex, database: Database) -> None:
    """Writes index and manifest: temporary files, fsync, rename, fsync of the directory. One save at a time for each persona.

    Raises:
        StoreReadOnly: they can't be written.
    """
    directory = _directory(database)
    new_index, new_manifest = directory / f".{INDEX_NAME}.new", directory / f".{MANIFEST_NAME}.new"
    change = index.change
    try:
        directory.mkdir(mode=0o700, exist_ok=True)
        with _durable(new_index) as file, _sealing(file, database) as written:
            revision, sha256, count = index.write_to(written)
        manifest = Manifest(FORMAT, _owner(database), index.generation, index.dimension, count, change, sha256)
        with _durable(new_manifest) as file:
            file.write(json.dumps(asdict(manifest), indent=2).encode() + b"\n")
        # Both renames at the very end: a crash between them leaves a pair that doesn't fit, and costs a rebuild.
        new_index.replace(directory / INDEX_NAME)
        new_manifest.replace(directory / MANIFEST_NAME)
        sync_directory(directory)
    except (OSError, RuntimeError) as error:  # FAISS reports a failed write as a RuntimeError
        for scrap in (new_index, new_manifest):
            with suppress(OSError):
                scrap.unlink()
        raise StoreReadOnly(
            "the vector index can't be saved",
            getattr(error, "strerror", None) or type(error).__name__,
            "Answers don't need the file, but a start is slower without it; make room on the disk, and the directory writable",
        ) from error
    index.saved_revision = revision


def size_bytes(database: Database) -> int:
    """What the saved index takes on the disk."""
    directory = _directory(database)
    return sum(file.stat().st_size for file in directory.iterdir() if file.is_file()) if directory.is_dir() else 0


def remove_files(database: Database) -> None:
    """Takes the saved index away, with everything that was set aside: it is made again from the database.

    Raises:
        StoreReadOnly: the directory can't be written.
    """
    directory = _directory(database)
    if not directory.is_dir():
        return
    try:
        for file in directory.iterdir():
            if file.is_file():
                file.unlink()
        sync_directory(directory)
    except OSError as error:
        raise StoreReadOnly(
            "the saved vector index can't be removed", error.strerror or str(error), "Make the data directory writable"
        ) from error


@contextmanager
def _durable(path: Path) -> Iterator[BinaryIO]:
    """A file that is on the disk when the block ends."""
    with path.open("wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def is_current(database: Database, generation: str, change: int) -> bool:
    """Whether the saved index says that it includes this change. What is in the file is looked at when it is loaded."""
    directory = _directory(database)
    try:
        manifest = _manifest(directory)
    except (_Unusable, OSError):
        return False
    found = (manifest.persona, manifest.generation, manifest.change)
    return (directory / INDEX_NAME).exists() and found == (_owner(database), generation, change)


def _read(database: Database, generation: str) -> tuple[VectorIndex | None, str]:
    """The saved index if it is one of this generation, and what the manifest says; otherwise why it can't be used."""
    directory = _directory(database)
    if not (directory / INDEX_NAME).exists():
        return None, ""
    try:
        manifest = _manifest(directory)
        if manifest.generation != generation and manifest.persona == _owner(database):
            return None, ""  # sound, and of no use: the next save replaces it
        index = _contents(directory / INDEX_NAME, manifest, database)
    except (_Unusable, StoreError, OSError, ValueError) as error:
        return None, getattr(error, "strerror", None) or str(error)
    held = (_owner(database), index.count, index.dimension or manifest.dimension)
    if held != (manifest.persona, manifest.count, manifest.dimension):
        return None, f"its manifest speaks of {manifest.count} vectors of length {manifest.dimension} of {manifest.persona}"
    return index, ""


def _contents(path: Path, manifest: Manifest, database: Database) -> VectorIndex:
    with path.open("rb") as file:
        if hashlib.file_digest(_unsealing(file, database), "sha256").hexdigest() != manifest.sha256:
            raise _Unusable("its checksum is wrong")
        file.seek(0)
        return VectorIndex.read_from(_unsealing(file, database), manifest.generation, manifest.change)


@contextmanager
def _sealing(file: BinaryIO, database: Database) -> Iterator[BinaryIO]:
    """What is written here arrives sealed where the persona is encrypted: what a memory is about can be guessed from its vector."""
    if database.key is None:
        yield file
        return
    with SealedWriter(file, database.key.files) as sealed:
        yield cast(BinaryIO, sealed)


def _unsealing(file: io.BufferedReader, database: Database) -> io.BufferedReader:
    return io.BufferedReader(SealedReader(file, database.key.files)) if database.key else file


def _difference(connection: apsw.Connection, index: VectorIndex) -> str:
    """Catches a sound index up with SQLite, by ids. Says why if it is not of this database."""
    held, wanted = index.ids(), stored_vectors.ids(connection, index.generation)
    common = np.intersect1d(held, wanted, assume_unique=True)
    if not _same_vectors(connection, index, common):
        return "its vectors are not those in the database"
    try:
        index.remove(np.setdiff1d(held, wanted, assume_unique=True).tolist())
        index.add(*stored_vectors.of_chunks(connection, index.generation, np.setdiff1d(wanted, held, assume_unique=True).tolist()))
    except ValueError as error:
        return str(error)
    index.change = stored_vectors.change_number(connection)
    return ""


def _same_vectors(connection: apsw.Connection, index: VectorIndex, common: Ids) -> bool:
    if not len(common):
        return True
    spread = common[np.linspace(0, len(common) - 1, min(COMPARED_SPREAD, len(common))).astype(np.int64)]
    chunks, stored = stored_vectors.of_chunks(connection, index.generation, {*spread.tolist(), *common[-COMPARED_LATEST:].tolist()})
    _, held = index.reconstruct(chunks.tolist())
    return held.shape == stored.shape and bool(np.allclose(held, normalised(stored), atol=TOLERANCE))


def _manifest(directory: Path) -> Manifest:
    try:
        return Manifest(**json.loads((directory / MANIFEST_NAME).read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise _Unusable("it has no manifest") from None
    except (ValueError, TypeError, RecursionError) as error:
        raise _Unusable(f"its manifest can't be read: {error}") from error


def _set_aside(directory: Path, reason: str) -> None:
    """Keeps what can't be used for whoever wants to know why, but not for ever."""
    logger.warning("the vector index of %s is set aside (%s) and made again from the database", directory.parent.name, reason)
    with suppress(OSError):  # where nothing can be renamed the index in memory is right all the same
        aside = directory / f"{INDEX_NAME}.damaged-{datetime.now(UTC):%Y%m%dT%H%M%S%f}"
        (directory / INDEX_NAME).replace(aside)
        for older in sorted(directory.glob(f"{INDEX_NAME}.damaged-*"))[:-DAMAGED_KEPT]:
            older.unlink()


def _directory(database: Database) -> Path:
    return database.path.parent / DIRECTORY_NAME


def _owner(database: Database) -> str:
    return database.path.parent.name
