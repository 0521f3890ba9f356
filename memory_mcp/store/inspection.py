"""Looking at a persona's database from outside, without changing a byte of it: for doctor, beside a server or without one."""

from dataclasses import dataclass
from pathlib import Path

import apsw

from memory_mcp.store import index_queue, lexical, memories, migrations

# SQLite lists up to 100 faults; a reader needs to know that there are some, and of what kind.
FAULTS_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Inspection:
    """What was seen. `faults` is empty when the file is sound; `waiting` counts memories in the index queue."""

    faults: tuple[str, ...]
    memories: int = 0
    in_trash: int = 0
    waiting: int = 0
    outdated: bool = False


def inspect(path: Path, in_use: bool) -> Inspection:
    """Checks the whole file, the lexical index with it. `in_use`: a server has it open."""
    try:
        connection = _open(path, in_use)
        try:
            return _inspect(connection)
        finally:
            connection.close()
    except apsw.Error as error:
        return Inspection((str(error),))


def _inspect(connection: apsw.Connection) -> Inspection:
    faults = tuple(str(row[0]) for row in connection.execute(f"PRAGMA quick_check({FAULTS_SHOWN})") if row[0] != "ok")
    if faults:
        return Inspection(faults)
    if migrations.pending(connection):
        stored = connection.execute("SELECT count(*) FROM memories").get if connection.table_exists(None, "memories") else 0
        return Inspection((), memories=stored, outdated=True)
    counts = memories.counts(connection)
    return Inspection((), counts["memories"], counts["in_trash"], index_queue.length(connection), outdated=lexical.is_outdated(connection))


def _open(path: Path, in_use: bool) -> apsw.Connection:
    log = path.with_name(path.name + "-wal")
    untouched = not in_use and (not log.exists() or log.stat().st_size == 0)
    # Reading a file in WAL mode makes two files beside it, unless SQLite is told that nobody will change it.
    location = path.absolute().as_uri() + ("?immutable=1" if untouched else "?mode=ro")
    connection = apsw.Connection(location, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    connection.set_busy_timeout(5_000)
    return connection
