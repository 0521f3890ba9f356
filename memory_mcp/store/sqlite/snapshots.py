"""Copies of whole databases: of what an open one holds at one moment, and of a closed one under another key."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import apsw

from memory_mcp.errors import StoreDamaged
from memory_mcp.store import memories
from memory_mcp.store.sqlite import cipher
from memory_mcp.store.sqlite.errors import translated_errors

PAGES_PER_STEP = 500

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Contents:
    """What a database holds, in numbers: enough to tell whether a copy has all of it. `last_operation` rises with everything written."""

    memories: int
    superseded: int
    in_trash: int
    versions: int
    last_operation: int


def copy_snapshot(connection: apsw.Connection, path: Path, key: bytes | None, progress: Progress = lambda _done, _all: None) -> None:
    """Copies what `connection` sees into a new file, by SQLite's online backup: writers go on meanwhile, and are not in it.

    `connection` is inside one snapshot (`Database.read`). An encrypted database is copied under any `key`, a plain one as it is.

    Raises:
        apsw.Error: it can't be read, or the copy can't be written.
    """
    contents(connection)  # the snapshot begins with the first reading
    copy = apsw.Connection(str(path))
    try:
        cipher.unlock(copy, key)
        copy.execute("PRAGMA synchronous=OFF; PRAGMA temp_store=MEMORY")  # whoever wants it durable makes the finished file so
        with copy.backup("main", connection, "main") as backup:
            while not backup.done:
                backup.step(PAGES_PER_STEP)
                progress(backup.page_count - backup.remaining, backup.page_count)
        # One file, and nothing beside it: the journal's mode is copied too.
        copy.pragma("journal_mode", "DELETE")
    finally:
        copy.close()


def convert(source: Path, source_key: bytes | None, target: Path, target_key: bytes | None) -> None:
    """Writes a new file with what a database holds, encrypted with another key, or plain. Nobody writes to it meanwhile.

    Raises:
        StoreDamaged: it can't be read with this key.
    """
    connection = open_copy(source, source_key)
    try:
        with translated_errors(source):
            connection.execute("PRAGMA temp_store=MEMORY; PRAGMA foreign_keys=OFF")
            connection.execute("VACUUM INTO ?", (cipher.target(target, target_key),))
    finally:
        connection.close()


def open_copy(path: Path, key: bytes | None) -> apsw.Connection:
    """A connection to a database that is nobody else's.

    Raises:
        StoreDamaged: it is not there, or not to be opened with this key.
    """
    with translated_errors(path):
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI)
        try:
            cipher.unlock(connection, key)
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
        except BaseException:
            connection.close()
            raise
        return connection


def verify(path: Path, key: bytes | None, expected: Contents) -> None:
    """Reads a copy from end to end: every page, the lexical index, and the numbers.

    Raises:
        StoreDamaged: something is wrong with it.
    """
    connection = open_copy(path, key)
    try:
        with translated_errors(path):
            faults = [row[0] for row in connection.execute("PRAGMA integrity_check(3)") if row[0] != "ok"]
            found = contents(connection)
    finally:
        connection.close()
    if faults or found != expected:
        raise StoreDamaged("a copy of the database is not what it should be", "; ".join(faults) or f"{found}, not {expected}", "Try again")


def contents_of(path: Path, key: bytes | None) -> Contents:
    """The numbers of a closed database."""
    connection = open_copy(path, key)
    try:
        return contents(connection)
    finally:
        connection.close()


def contents(connection: apsw.Connection) -> Contents:
    """The numbers of what a connection sees."""
    counts = memories.counts(connection)
    versions = connection.execute("SELECT count(*) FROM memory_versions").get
    last = connection.execute("SELECT coalesce(max(id), 0) FROM operations").get
    return Contents(counts["memories"], counts["superseded"], counts["in_trash"], versions, last)
