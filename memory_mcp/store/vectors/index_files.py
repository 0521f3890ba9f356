"""How the FAISS index of a persona is saved, loaded, and checked: `vector_store/` with the index and its manifest.

A file that is missing, damaged, or outdated is rebuilt from SQLite.
"""

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
from memory_mcp.store.files.durable_files import PRIVATE_DIRECTORY, sync_directory
from memory_mcp.store.files.sealed import SealedReader, SealedWriter
from memory_mcp.store.sqlite.database import Database
from memory_mcp.store.vectors import stored_vectors
from memory_mcp.store.vectors.faiss_index import VectorIndex
from memory_mcp.store.vectors.nearness import normalised
from memory_mcp.store.vectors.stored_vectors import Ids

DIRECTORY_NAME = "vector_store"
INDEX_NAME = "index.faiss"
MANIFEST_NAME = "manifest.json"
FORMAT = 1
DAMAGED_KEPT = 2
# So many vectors, spread over the file and from its end, are compared with SQLite, because a file from before a restored backup
# can have the same ids. Comparing all vectors would cost as much as a rebuild.
COMPARED_SPREAD, COMPARED_LATEST = 64, 64
TOLERANCE = 1e-5

logger = logging.getLogger(__name__)

OnRepair = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Manifest:
    """Describes the index file. `persona` is the name of the persona's directory."""

    format: int
    persona: str
    generation: str
    dimension: int
    count: int
    change: int
    sha256: str


class _Unusable(Exception):
    """A saved index can't be used."""


def build(connection: apsw.Connection, generation: str) -> VectorIndex:
    """Build an index from the vectors in SQLite. Nothing is embedded."""
    index = VectorIndex(generation, stored_vectors.change_number(connection))
    try:
        for chunks, vectors in stored_vectors.pages(connection, generation):
            index.add(chunks, vectors)
    except ValueError as error:
        raise StoreDamaged(
            "stored vectors are of different lengths", "{}", "Stop the server, delete them from the table `vectors`, and start it", error
        ) from error
    return index


def load(database: Database, generation: str, on_repair: OnRepair = lambda _reason: None) -> VectorIndex | None:
    """The saved index, checked against SQLite and brought up to date; built from SQLite if there is no usable file.

    None if `generation` no longer serves searches. `on_repair` is called with the reason when a file had to be set aside.

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
            on_repair(reason)
        return build(connection, generation)


def set_aside_unusable(database: Database, generation: str) -> str:
    """Rename an unusable file, so that the next save doesn't overwrite it. Returns the reason; empty if the file is sound."""
    _, reason = _read(database, generation)
    if reason:
        _set_aside(_directory(database), reason)
    return reason


def save(index: VectorIndex, database: Database) -> None:
    """Save index and manifest: temporary files, fsync, rename, fsync of the directory. One save at a time per persona.

    Raises:
        StoreReadOnly: they can't be written.
    """
    directory = _directory(database)
    new_index, new_manifest = directory / f".{INDEX_NAME}.new", directory / f".{MANIFEST_NAME}.new"
    change = index.change
    try:
        directory.mkdir(mode=PRIVATE_DIRECTORY, exist_ok=True)
        with _durable(new_index) as file, _encrypting(file, database) as written:
            revision, sha256, count = index.write_to(written)
        manifest = Manifest(FORMAT, _owner(database), index.generation, index.dimension, count, change, sha256)
        with _durable(new_manifest) as file:
            file.write(json.dumps(asdict(manifest), indent=2).encode() + b"\n")
        # Both renames at the very end: a crash between them leaves a mismatched pair, which costs a rebuild.
        new_index.replace(directory / INDEX_NAME)
        new_manifest.replace(directory / MANIFEST_NAME)
        sync_directory(directory)
    except (OSError, RuntimeError) as error:  # FAISS reports a failed write as a RuntimeError
        for temporary in (new_index, new_manifest):
            with suppress(OSError):
                temporary.unlink()
        raise StoreReadOnly(
            "the vector index can't be saved",
            "{}",
            "Answers don't need the file, but a start is slower without it; make room on the disk, and the directory writable",
            getattr(error, "strerror", None) or type(error).__name__,
        ) from error
    index.saved_revision = revision


def size_bytes(database: Database) -> int:
    """The size of the saved index on disk."""
    directory = _directory(database)
    return sum(file.stat().st_size for file in directory.iterdir() if file.is_file()) if directory.is_dir() else 0


def remove_files(database: Database) -> None:
    """Delete the saved index and everything set aside; it is rebuilt from the database.

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
            "the saved vector index can't be removed", "{}", "Make the data directory writable", error.strerror or str(error)
        ) from error


@contextmanager
def _durable(path: Path) -> Iterator[BinaryIO]:
    """A file that is synced to disk when the block ends."""
    with path.open("wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def is_current(database: Database, generation: str, change: int) -> bool:
    """Whether the manifest of the saved index includes this change. The file itself is checked when it is loaded."""
    directory = _directory(database)
    try:
        manifest = _manifest(directory)
    except (_Unusable, OSError):
        return False
    saved = (manifest.persona, manifest.generation, manifest.change)
    return (directory / INDEX_NAME).exists() and saved == (_owner(database), generation, change)


def _read(database: Database, generation: str) -> tuple[VectorIndex | None, str]:
    """The saved index and an empty text if it is of this generation and matches its manifest; otherwise None and why it can't be used."""
    directory = _directory(database)
    if not (directory / INDEX_NAME).exists():
        return None, ""
    try:
        manifest = _manifest(directory)
        if manifest.generation != generation and manifest.persona == _owner(database):
            return None, ""  # of another generation: the next save replaces it
        with (directory / INDEX_NAME).open("rb") as file:
            if hashlib.file_digest(_decrypting(file, database), "sha256").hexdigest() != manifest.sha256:
                return None, "its checksum is wrong"
            file.seek(0)
            index = VectorIndex.read_from(_decrypting(file, database), manifest.generation, manifest.change)
    except (_Unusable, StoreError, OSError, ValueError) as error:
        return None, getattr(error, "strerror", None) or str(error)
    held = (_owner(database), index.count, index.dimension or manifest.dimension)
    if held != (manifest.persona, manifest.count, manifest.dimension):
        return None, f"its manifest describes {manifest.count} vectors of length {manifest.dimension} of {manifest.persona}"
    return index, ""


@contextmanager
def _encrypting(file: BinaryIO, database: Database) -> Iterator[BinaryIO]:
    """Encrypts what is written if the persona is encrypted, because vectors reveal what a memory is about."""
    if database.key is None:
        yield file
        return
    with SealedWriter(file, database.key.files) as sealed:
        yield cast(BinaryIO, sealed)


def _decrypting(file: io.BufferedReader, database: Database) -> io.BufferedReader:
    return io.BufferedReader(SealedReader(file, database.key.files)) if database.key else file


def _difference(connection: apsw.Connection, index: VectorIndex) -> str:
    """Bring an index up to date with SQLite, by ids. Returns why the index isn't of this database; empty if it is."""
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
    """Rename an unusable index for later analysis; only the latest few are kept."""
    logger.warning("the vector index of %s is set aside (%s) and rebuilt from the database", directory.parent.name, reason)
    with suppress(OSError):  # a failed rename doesn't affect the index in memory
        aside = directory / f"{INDEX_NAME}.damaged-{datetime.now(UTC):%Y%m%dT%H%M%S%f}"
        (directory / INDEX_NAME).replace(aside)
        for older in sorted(directory.glob(f"{INDEX_NAME}.damaged-*"))[:-DAMAGED_KEPT]:
            older.unlink()


def _directory(database: Database) -> Path:
    return database.path.parent / DIRECTORY_NAME


def _owner(database: Database) -> str:
    return database.path.parent.name
