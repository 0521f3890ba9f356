"""Copies whole databases: a snapshot of an open one, and a closed one re-encrypted under another key."""

from collections.abc import Callable
from contextlib import closing
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
    """The row counts of a database, to check that a copy is complete. `last_operation` grows with every change."""

    memories: int
    superseded: int
    in_trash: int
    versions: int
    last_operation: int


def copy_snapshot(connection: apsw.Connection, path: Path, key: bytes | None, progress: Progress = lambda _done, _all: None) -> None:
    """Copy the snapshot that `connection` sees into a new file, by SQLite's online backup, while writes continue.

    `connection` comes from `Database.read`. The copy of an encrypted database may have any `key`; that of a plain one has none.

    Raises:
        apsw.Error: the database can't be read, or the copy can't be written.
    """
    contents(connection)  # the first read starts the snapshot
    with closing(apsw.Connection(str(path))) as copy:
        cipher.unlock(copy, key)
        copy.execute("PRAGMA synchronous=OFF; PRAGMA temp_store=MEMORY")  # the caller makes the finished file durable
        with copy.backup("main", connection, "main") as backup:
            while not backup.done:
                backup.step(PAGES_PER_STEP)
                progress(backup.page_count - backup.remaining, backup.page_count)
        # A single file without a log: the journal mode is copied too.
        copy.pragma("journal_mode", "DELETE")


def convert(source: Path, source_key: bytes | None, target: Path, target_key: bytes | None) -> None:
    """Copy a closed database into a new file with another key, or without one.

    Raises:
        StoreDamaged: the source can't be read with `source_key`.
    """
    with closing(open_copy(source, source_key)) as connection, translated_errors(source):
        connection.execute("PRAGMA temp_store=MEMORY; PRAGMA foreign_keys=OFF")
        connection.execute("VACUUM INTO ?", (cipher.target(target, target_key),))


def open_copy(path: Path, key: bytes | None) -> apsw.Connection:
    """Open a database file that nothing else uses.

    Raises:
        StoreDamaged: there is none, or it can't be opened with this key.
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
    """Check a copy completely: every page, the lexical index, and the row counts.

    Raises:
        StoreDamaged: the copy is wrong.
    """
    with closing(open_copy(path, key)) as connection, translated_errors(path):
        faults = [row[0] for row in connection.execute("PRAGMA integrity_check(3)") if row[0] != "ok"]
        actual = contents(connection)
    if faults or actual != expected:
        raise StoreDamaged(
            "a copy of the database differs from the original", "{}", "Try again", "; ".join(faults) or f"{actual}, not {expected}"
        )


def contents_of(path: Path, key: bytes | None) -> Contents:
    """The row counts of a closed database."""
    with closing(open_copy(path, key)) as connection:
        return contents(connection)


def contents(connection: apsw.Connection) -> Contents:
    """The row counts that a connection sees."""
    versions = connection.execute("SELECT count(*) FROM memory_versions").get
    last = connection.execute("SELECT coalesce(max(id), 0) FROM operations").get
    return Contents(**memories.counts(connection), versions=versions, last_operation=last)
