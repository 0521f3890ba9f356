"""Inspects a persona's database without changing a byte, for `doctor`, whether or not a server runs."""

import logging
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import apsw

from memory_mcp.errors import StoreError
from memory_mcp.store import memories, migrations, operations
from memory_mcp.store.files.encryption_keys import PersonaKey
from memory_mcp.store.legacy import foreign_schemas, original_files
from memory_mcp.store.legacy.foreign_limits import distrust
from memory_mcp.store.lexical import bm25_index
from memory_mcp.store.sqlite import cipher
from memory_mcp.store.sqlite.database import BUSY_TIMEOUT_MS
from memory_mcp.store.vectors import index_queue

# SQLite lists up to 100 faults; the first few show their kind.
FAULTS_SHOWN = 3

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Inspection:
    """The result of an inspection. `faults` is empty if the file is sound; `waiting` is the length of the index queue, `refused`
    the refusal of a file that a newer version or an unknown program has written, `malformed` some rows with what can't be read of them,
    `is_behind` whether the last operation in the log is missing."""

    faults: tuple[str, ...]
    memories: int = 0
    in_trash: int = 0
    waiting: int = 0
    outdated: bool = False
    refused: str = ""
    malformed: tuple[tuple[str, list[str]], ...] = ()
    is_behind: bool = False


def inspect(path: Path, key: PersonaKey | None = None, logged: str | None = None) -> Inspection:
    """Check the whole file including the lexical index, with its key if it is encrypted. `logged` is the id of an operation that it must
    contain."""
    quiet = not _is_open_elsewhere(path)
    seen = _attempt(path, quiet, key, logged)
    # If a server opened the file meanwhile, an apparent fault may have been a change.
    is_suspect = quiet and (seen.faults or seen.is_behind) and _is_open_elsewhere(path)
    return _attempt(path, False, key, logged) if is_suspect else seen


def _attempt(path: Path, quiet: bool, key: PersonaKey | None, logged: str | None) -> Inspection:
    try:
        with _opened(path, quiet, key) as connection:
            return _inspect(connection, logged)
    except (apsw.Error, ArithmeticError, LookupError, RecursionError, TypeError, ValueError) as error:
        return Inspection((str(error),))


@contextmanager
def _opened(path: Path, quiet: bool, key: PersonaKey | None = None, wait_ms: int = BUSY_TIMEOUT_MS) -> Iterator[apsw.Connection]:
    """A read-only connection. `quiet`: no other program has the file open, so that SQLite needs no files for its locks."""
    location = path.absolute().as_uri() + ("?immutable=1" if quiet else "?mode=ro")
    with closing(apsw.Connection(location, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)) as connection:
        cipher.unlock(connection, key.database if key else None)
        connection.set_busy_timeout(wait_ms)
        yield connection


def _is_open_elsewhere(path: Path) -> bool:
    """Whether a program has the file open or crashed with it open, by its log or journal."""
    return any(path.with_name(path.name + ending).exists() for ending in ("-wal", "-journal"))


def _inspect(connection: apsw.Connection, logged: str | None) -> Inspection:
    faults = tuple(str(row[0]) for row in connection.execute(f"PRAGMA quick_check({FAULTS_SHOWN})") if row[0] != "ok")
    if faults:
        return Inspection(faults)
    try:
        migrations.check_schema(connection, Path(connection.filename).name)
    except StoreError as error:
        return Inspection((), refused=str(error))
    if migrations.pending(connection):
        stored = connection.execute("SELECT count(*) FROM memories").get if connection.table_exists(None, "memories") else 0
        return Inspection((), memories=stored, outdated=True)
    if lost := migrations.lost_columns(connection):
        return Inspection((f"it lacks the columns {', '.join(lost)}",))
    counts = memories.counts(connection)
    return Inspection(
        (),
        counts["memories"],
        counts["in_trash"],
        index_queue.length(connection),
        outdated=bm25_index.is_outdated(connection),
        malformed=tuple(memories.malformed(connection, FAULTS_SHOWN)),
        is_behind=logged is not None and not operations.is_recorded(connection, logged),
    )


def memories_in(path: Path, key: PersonaKey | None = None) -> int | None:
    """How many memories a persona's database has, without a check of the file. None if it can't be read, or isn't migrated."""
    try:
        with _opened(path, not _is_open_elsewhere(path), key) as connection:
            return memories.counts(connection)["memories"]
    except (apsw.Error, UnicodeDecodeError):
        return None


def refuse_unknown(path: Path) -> None:
    """Refuse the file of an unknown program before it is opened for writing, which changes it.

    Raises:
        StoreError: no table of it is known to contain memories.
    """
    if not cipher.is_plain(path):
        return
    try:
        with _opened(path, quiet=True) as connection:
            is_ours = migrations.is_migrated(connection)
        if not is_ours:
            with original_files.unchanged(path) as connection:
                distrust(connection)
                migrations.check_schema(connection, path.name)
    except (apsw.Error, UnicodeDecodeError) as error:
        logger.debug("%s can't be inspected, and opening it says why: %s", path.name, error)


def is_from_older_server(path: Path) -> bool:
    """Whether opening this database would adopt tables of another program, or refuse them. False if it can't be read."""
    try:
        with _opened(path, quiet=not _is_open_elsewhere(path), wait_ms=0) as connection:
            is_foreign = not migrations.is_migrated(connection) and bool(foreign_schemas.columns_of(connection))
            return is_foreign or migrations.touches_older_tables(connection)
    except (apsw.Error, UnicodeDecodeError):
        return False
