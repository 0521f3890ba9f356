"""Translates SQLite's errors into those of `memory_mcp.errors`: what happened, why, what to do."""

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from memory_mcp.errors import Overloaded, StoreDamaged, StoreError, StoreFull, StoreReadOnly

CHANGED_BY_HAND = (
    *("no such table", "no such column", "malformed JSON", "has no column named", "because it is a view", "duplicate column name"),
    *(
        "already exists",
        "no such module",
        "vtable constructor failed",
        "malformed database schema",
        "no such collation",
        "cannot INSERT into",
    ),
    *("no such index", "error in view", "error in trigger", "error in index", "error in table", "no such function", "virtual table"),
)
FULL_DISK_BYTES = 128 * 1024
# What the name of a directory has behind that of its persona, where other systems could not hold it alone.
_HASH = re.compile(r"~[0-9a-f]{20}$")


@contextmanager
def translated_errors(path: Path) -> Iterator[None]:
    """Raise SQLite's errors from the block as ours."""
    try:
        yield
    except apsw.Error as error:
        translated = translate(error, path)
        if translated is None:
            raise
        raise translated from error


def translate(error: apsw.Error, path: Path) -> StoreError | Overloaded | None:
    """Our error for an SQLite error of the database at `path`; None for a bug, such as wrong SQL.

    A table that isn't there and JSON that is none are no bugs: the file was edited by hand.
    """
    name = shown_name(path)
    no_file = isinstance(error, apsw.CantOpenError | apsw.IOError)
    if isinstance(error, apsw.FullError) or (no_file and _is_full(path)):
        return StoreFull("the disk is full", "nothing could be written for {}", "Free some room and try again; reading still works", name)
    if isinstance(error, apsw.ReadOnlyError | apsw.PermissionsError):
        return StoreReadOnly(
            "the files of {} can't be written", "{}", "Make the data directory writable for the server; reading still works", name, error
        )
    if isinstance(error, apsw.CorruptError | apsw.NotADBError):
        do = "Run `memory-mcp doctor`, which suggests a repair; other personas are not affected"
        return StoreDamaged("the database of {} is damaged", "{}", do, name, error)
    if isinstance(error, apsw.BusyError):
        return Overloaded(
            "the database of {} is locked by another program",
            "it was still locked after seconds of waiting",
            "Close that program and try again",
            name,
        )
    if no_file or _is_changed_by_hand(error):
        do = "Check the disk (room, quota) and the permissions of the data directory" if no_file else "See `memory-mcp doctor`"
        return StoreError("the database of {} can't be used", "{}", do, name, error)
    return None


def shown_name(path: Path) -> str:
    """What the persona of the database at `path` is called in errors: the readable part of its directory's name."""
    return _HASH.sub("", path.parent.name)


def _is_changed_by_hand(error: apsw.Error) -> bool:
    return isinstance(error, apsw.SQLError) and any(words in str(error) for words in CHANGED_BY_HAND)


def _is_full(path: Path) -> bool:
    """For log and journal files SQLite reports only that they can't be opened, not that the disk is full."""
    try:
        return shutil.disk_usage(path.parent).free < FULL_DISK_BYTES
    except OSError:
        return False
