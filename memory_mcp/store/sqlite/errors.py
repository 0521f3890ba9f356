"""What SQLite's errors mean for whoever called: what happened, why, what to do."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from memory_mcp.errors import Overloaded, StoreDamaged, StoreError, StoreFull, StoreReadOnly

LEAST_ROOM_BYTES = 128 * 1024


@contextmanager
def translated_errors(path: Path) -> Iterator[None]:
    """SQLite's errors as ours: what happened, why, what to do."""
    try:
        yield
    except apsw.Error as error:
        ours = as_ours(error, path)
        if ours is None:
            raise
        raise ours from error


def as_ours(error: apsw.Error, path: Path) -> StoreError | Overloaded | None:
    """What an error of the database at `path` is for whoever called; None where it is a mistake of ours."""
    name = path.parent.name
    no_file = isinstance(error, apsw.CantOpenError | apsw.IOError)
    if isinstance(error, apsw.FullError) or (no_file and _is_full(path)):
        return StoreFull("the disk is full", f"nothing could be written for {name}", "Free some room and try again; reading still works")
    if isinstance(error, apsw.ReadOnlyError | apsw.PermissionsError):
        return StoreReadOnly(
            f"the files of {name} can't be written", str(error), "Make the data directory writable for the server; reading still works"
        )
    if isinstance(error, apsw.CorruptError | apsw.NotADBError):
        do = "Run `memory-mcp doctor`, which says what to do; other personas are not affected"
        return StoreDamaged(f"the database of {name} is damaged", str(error), do)
    if isinstance(error, apsw.BusyError):
        return Overloaded(
            f"the database of {name} is locked by another program",
            "it was still locked after seconds of waiting",
            "Close that program and try again",
        )
    if no_file:
        do = "Check the disk (room, quota) and the permissions of the data directory"
        return StoreError(f"the database of {name} can't be used", str(error), do)
    return None


def _is_full(path: Path) -> bool:
    """SQLite says of a file beside the database only that it could not be had, and not that there was no room for it."""
    try:
        return shutil.disk_usage(path.parent).free < LEAST_ROOM_BYTES
    except OSError:
        return False
