"""Files that an older server left: what they are, a copy before anything is changed in them, and making one of database and log."""

import filecmp
import glob
import os
import shutil
import stat
from datetime import datetime
from pathlib import Path

import apsw

from memory_mcp.errors import StoreError
from memory_mcp.store.files.durable_files import sync_directory
from memory_mcp.store.sqlite.database import immediate
from memory_mcp.store.sqlite.errors import translated_errors

# In the data directory. Below it, by the time of the adoption: what was there before.
KEPT_NAME = ".adopted"
PRIVATE = 0o700
_SIDECARS = ("-wal", "-journal")
_MAGIC = b"SQLite format 3\x00"


def kept_place(data_directory: Path, now: datetime) -> Path:
    """Where what an adoption at `now` touches is kept. It does not exist yet."""
    return data_directory / KEPT_NAME / f"{now:%Y%m%dT%H%M%S}Z"


def make_private_directory(directory: Path) -> None:
    """Makes it, and what is missing above it, for the owner alone, and safe on the disk."""
    missing = [place for place in (directory, *directory.parents) if not place.exists()]
    for place in reversed(missing):
        place.mkdir(mode=PRIVATE)
        sync_directory(place.parent)


def unused(path: Path) -> Path:
    """`path`, or beside it a name that nothing has."""
    n = 2
    found = path
    while os.path.lexists(found):
        found, n = path.with_name(f"{path.name}.{n}"), n + 1
    return found


def keep_database(connection: apsw.Connection, target: Path) -> None:
    """Writes what an open database holds as a file of its own: whole and on the disk, or not there under this name.

    `target` is `<kept>/<time>/<persona>/<name>`. What an adoption kept before it was interrupted is not kept a second time.
    """
    same = f"*/{glob.escape(target.parent.name)}/{target.name}"  # of the same persona, at other times
    for interrupted in target.parents[2].glob(f"{same}.part"):
        interrupted.unlink()
    make_private_directory(target.parent)
    unfinished = target.with_name(f"{target.name}.part")
    copy = apsw.Connection(str(unfinished))
    try:
        with copy.backup("main", connection, "main") as backup:
            while not backup.done:
                backup.step(1_000)
    finally:
        copy.close()
    if any(filecmp.cmp(unfinished, known, shallow=False) for known in target.parents[2].glob(same)):
        unfinished.unlink()
        return
    _finish(unfinished, target)


def keep_file(source: Path, target: Path) -> None:
    """Copies a file as it is, in the same manner."""
    make_private_directory(target.parent)
    unfinished = target.with_name(f"{target.name}.part")
    shutil.copy2(source, unfinished)
    _finish(unfinished, target)


def _finish(unfinished: Path, target: Path) -> None:
    with unfinished.open("rb+") as file:
        os.fsync(file.fileno())
    unfinished.replace(target)
    sync_directory(target.parent)


def holds_memories(path: Path) -> bool:
    """Whether this is an SQLite file with a table of memories, as far as can be told without changing a byte."""
    try:
        with path.open("rb") as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                return False
        connection = apsw.Connection(f"{path.absolute().as_uri()}?immutable=1", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
        try:
            return connection.table_exists(None, "memories")
        finally:
            connection.close()
    except (OSError, apsw.Error):
        return False


def sidecars(path: Path) -> list[Path]:
    """What lies beside a database that was not closed: changes that are not in it yet."""
    return [beside for ending in _SIDECARS if (beside := path.with_name(path.name + ending)).exists()]


def close_properly(path: Path, kept: Path) -> None:
    """Brings what lies beside a database into it, so that one rename moves all of it. What was there is kept in the directory `kept`.

    Raises:
        StoreError: it can't be; another program may have it open. Nothing is lost: SQLite does it wholly or not at all.
    """
    make_writable(path)
    beside = sidecars(path)
    for file in [path, *beside] if beside else []:
        keep_file(file, kept / file.name)
    with translated_errors(path):
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            connection.pragma("synchronous", "FULL")
            if connection.pragma("journal_mode", "DELETE") != "delete":
                raise StoreError(f"{path.name} is in use", "another program has it open", "Stop the older server and start again")
            with immediate(connection):
                pass
        except apsw.BusyError as error:
            raise StoreError(f"{path.name} is in use", str(error), "Stop the older server and start again") from error
        finally:
            connection.close()


def make_writable(path: Path) -> None:
    """An older file that was made read-only stays so in the copy that is kept; the one that is served is written to.

    Raises:
        OSError: neither it nor its directory can be written.
    """
    mode = path.stat().st_mode
    if mode & stat.S_IWUSR and os.access(path, os.W_OK):
        return
    try:
        path.chmod(mode | stat.S_IRUSR | stat.S_IWUSR)
    except PermissionError:  # somebody else's file in a directory of ours: a copy of it is ours
        own = path.with_name(f".{path.name}.part")
        shutil.copyfile(path, own)
        _finish(own, path)
