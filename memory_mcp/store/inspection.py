"""Looking at a persona's database from outside, without changing a byte of it: for doctor, beside a server or without one."""

from dataclasses import dataclass
from pathlib import Path

import apsw

from memory_mcp.store import memories, migrations
from memory_mcp.store.files.encryption_keys import PersonaKey
from memory_mcp.store.lexical import bm25_index
from memory_mcp.store.sqlite import cipher
from memory_mcp.store.vectors import index_queue

# SQLite lists up to 100 faults; a reader needs to know that there are some, and of what kind.
FAULTS_SHOWN = 3
BUSY_TIMEOUT_MS = 5_000


@dataclass(frozen=True, slots=True)
class Inspection:
    """What was seen. `faults` is empty when the file is sound; `waiting` counts memories in the index queue."""

    faults: tuple[str, ...]
    memories: int = 0
    in_trash: int = 0
    waiting: int = 0
    outdated: bool = False


def inspect(path: Path, key: PersonaKey | None = None) -> Inspection:
    """Checks the whole file, the lexical index with it; an encrypted one with its key."""
    quiet = not _is_open_elsewhere(path)
    seen = _attempt(path, quiet, key)
    # Opened by a server while it was looked at: what seemed a fault may have been a change.
    return _attempt(path, False, key) if quiet and seen.faults and _is_open_elsewhere(path) else seen


def _attempt(path: Path, quiet: bool, key: PersonaKey | None) -> Inspection:
    # Reading makes files beside one in WAL mode, unless SQLite is told that nobody is changing it.
    location = path.absolute().as_uri() + ("?immutable=1" if quiet else "?mode=ro")
    try:
        connection = apsw.Connection(location, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
        try:
            cipher.unlock(connection, key.database if key else None)
            connection.set_busy_timeout(BUSY_TIMEOUT_MS)
            return _inspect(connection)
        finally:
            connection.close()
    except apsw.Error as error:
        return Inspection((str(error),))


def _is_open_elsewhere(path: Path) -> bool:
    """Whether somebody has it open, or had until a crash: their log or journal lies beside it."""
    return any(path.with_name(path.name + ending).exists() for ending in ("-wal", "-journal"))


def _inspect(connection: apsw.Connection) -> Inspection:
    faults = tuple(str(row[0]) for row in connection.execute(f"PRAGMA quick_check({FAULTS_SHOWN})") if row[0] != "ok")
    if faults:
        return Inspection(faults)
    if migrations.pending(connection):
        stored = connection.execute("SELECT count(*) FROM memories").get if connection.table_exists(None, "memories") else 0
        return Inspection((), memories=stored, outdated=True)
    counts = memories.counts(connection)
    return Inspection(
        (), counts["memories"], counts["in_trash"], index_queue.length(connection), outdated=bm25_index.is_outdated(connection)
    )


def latest_texts(path: Path, limit: int) -> list[str]:
    """What the newest memories say, without those in the trash. None of a database that can't be read or is not up to date."""
    location = path.absolute().as_uri() + ("?mode=ro" if _is_open_elsewhere(path) else "?immutable=1")
    try:
        connection = apsw.Connection(location, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
        try:
            connection.set_busy_timeout(BUSY_TIMEOUT_MS)
            query = "SELECT content FROM memories WHERE deleted_at IS NULL ORDER BY id DESC LIMIT ?"
            return [str(content) for (content,) in connection.execute(query, (limit,))]
        finally:
            connection.close()
    except apsw.Error:
        return []


def is_from_older_server(path: Path) -> bool:
    """Whether opening this database would take over tables that an older server made. False where it can't be told."""
    location = path.absolute().as_uri() + ("?mode=ro" if _is_open_elsewhere(path) else "?immutable=1")
    try:
        connection = apsw.Connection(location, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
        try:
            return migrations.touches_older_tables(connection)
        finally:
            connection.close()
    except apsw.Error:
        return False
