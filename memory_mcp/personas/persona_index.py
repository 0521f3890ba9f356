"""An index of the personas of a data directory, so that neither a call nor a start reads every one of them.

The directories are the truth: the index is compared with their list whenever the data directory has changed, which one `stat` shows, and at a start with
the identity file of each. Where it is missing or damaged, it is made again; where none can be kept, as on a full disk, it is in memory.
"""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import apsw

from memory_mcp.errors import StoreDamaged, StoreError
from memory_mcp.language.sound import reading
from memory_mcp.personas.directories import IDENTITY_NAME, identity, is_persona
from memory_mcp.personas.names import directory_name, fold
from memory_mcp.store.files.durable_files import PRIVATE_DIRECTORY, PRIVATE_FILE
from memory_mcp.store.files.encryption_keys import is_encrypted
from memory_mcp.store.sqlite.network_drives import is_on_network_drive

# A directory of its own: SQLite makes and removes files next to a database, which would change the data directory.
DIRECTORY_NAME, FILE_NAME = ".personas", "index.sqlite"
# Changes with the table, and with what `fold` and `reading` return.
VERSION = 2
# The time of a directory moves in steps of some milliseconds: what another program changes in the step in which it was read leaves its time as
# it is. So a directory that had just changed is read once more, a little later: after so many times what reading it took, because
# personas that are made without a pause keep it from settling.
STEP_SECONDS, SETTLING_SECONDS, COMPARISONS_APART = 0.05, 2.0, 100
# Up to this many names are all compared with a misspelled one; of more, those before and after it in the order of letters and of sounds.
COMPARED = 1_000

_SCHEMA = f"""
DROP TABLE IF EXISTS personas;
CREATE TABLE personas (
    directory TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, stamp TEXT NOT NULL, folded TEXT NOT NULL, sound TEXT NOT NULL,
    encrypted INTEGER NOT NULL, adopted INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX personas_by_letters ON personas(folded);
CREATE INDEX personas_by_sound ON personas(sound);
PRAGMA user_version = {VERSION};
"""
_BESIDE = " UNION ".join(
    f"SELECT name FROM (SELECT name FROM personas WHERE {column} {beside} ?{number} ORDER BY {column} {order} LIMIT {COMPARED // 4})"
    for number, column in enumerate(("folded", "sound"), 1)
    for beside, order in ((">=", "ASC"), ("<", "DESC"))
)

logger = logging.getLogger(__name__)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Compared:
    """The last comparison with the data directory: the directory's time of change then, and until when the same time proves that nothing has changed."""

    settling_seconds: float
    changed_at: int = 0
    holds_until: float = float("inf")

    def with_change(self, changed_at: int) -> "_Compared":
        """The same with a change that is known; one of just now may hide another one."""
        is_settled = abs(time.time_ns() - changed_at) >= STEP_SECONDS * 1e9
        again = self.holds_until if is_settled else min(self.holds_until, time.monotonic() + self.settling_seconds)
        return replace(self, changed_at=changed_at, holds_until=again)


class PersonaIndex:
    """The names of all personas and pools of a data directory. Thread-safe."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._lock = threading.RLock()
        self._compared: _Compared | None = None
        self._others: set[str] = set()  # what is no persona, and may become one
        self._unreadable: set[str] = set()  # what can't be read, and was logged
        self._connection: apsw.Connection | None = None
        self._read(lambda _: None)

    def names(self, after: str = "", limit: int | None = None) -> list[str]:
        """The names in order, those of pools first: those after one, at most so many."""
        return self._column("SELECT name FROM personas WHERE name > ? ORDER BY name LIMIT ?", (after, -1 if limit is None else limit))

    def count(self, after: str = "") -> int:
        """How many there are after a name."""
        return int(self._column("SELECT count(*) FROM personas WHERE name > ?", (after,))[0])

    def folded_as(self, name: str) -> list[str]:
        """The names that differ from this one in case or width only, itself included."""
        return self._column("SELECT name FROM personas WHERE folded = ?", (fold(name),))

    def near(self, name: str) -> list[str]:
        """The names that this one may be a misspelling of, among others."""
        return self.names() if self.count() <= COMPARED else self._column(_BESIDE, (fold(name), reading(fold(name))))

    def directories(self, *, encrypted: bool) -> list[str]:
        """The directories of the personas that are encrypted, or of those that aren't."""
        return self._column("SELECT directory FROM personas WHERE encrypted = ? ORDER BY directory", (encrypted,))

    def adopted(self) -> set[str]:
        """The directories in which nothing of an older server is left."""
        return set(self._column("SELECT directory FROM personas WHERE adopted", ()))

    def names_not_adopted(self) -> list[str]:
        """The names of those that may have something of an older server."""
        return self._column("SELECT name FROM personas WHERE NOT adopted ORDER BY name", ())

    def note_adopted(self, name: str) -> None:
        """Notes that nothing of an older server is left of a persona, for as long as its identity file is the same."""
        self._read(lambda index: index.execute("UPDATE personas SET adopted = stamp <> '' WHERE name = ?", (name,)))

    @contextmanager
    def creating(self, folder: str) -> Iterator[None]:
        """Notes a directory that is made in the block, so that the others aren't compared again. It is read when names are asked for."""
        with self._lock:
            compared = self._compared if self._is_current() else None
            yield
            self._others.add(folder)
            if compared:
                self._compared = compared.with_change(_changed_at(self._directory))

    def changed(self) -> None:
        """Call it after a persona's directory was moved here, so that it is noticed at once."""
        with self._lock:
            self._compared = None

    def close(self) -> None:
        """Close the file. The next call opens it again."""
        with self._lock:
            if self._connection:
                self._connection.close()
            self._connection = None

    def _column(self, query: str, values: tuple[Any, ...]) -> list[Any]:
        return self._read(lambda index: [row[0] for row in index.execute(query, values)])

    def _read(self, work: Callable[[apsw.Connection], T]) -> T:
        """The result of `work` with the index as it is now. Where its file can't be used any more, it goes on in memory."""
        with self._lock:
            try:
                if self._connection is None:
                    self._connection = _opened(self._directory)
                    self._compare(self._connection, with_identities=True)
                elif not self._is_current():
                    self._compare(self._connection)
                elif self._others:
                    self._note(self._connection, set(self._others))
                return work(self._connection)
            except apsw.Error as error:
                logger.warning("the index of personas goes on in memory until the next start: %s", error)
                self.close()
                self._connection = _in_memory()
                self._compare(self._connection, with_identities=True)
                return work(self._connection)

    def _compare(self, index: apsw.Connection, *, with_identities: bool = False) -> None:
        """Add and remove what was added and removed in the data directory, and with `with_identities` read what has another identity file."""
        began, changed_at = time.monotonic(), _changed_at(self._directory)
        with os.scandir(self._directory) as entries:
            present = {entry.name for entry in entries if not entry.name.startswith(".")}
        known: dict[str, str] = dict(index.execute("SELECT directory, stamp FROM personas").fetchall())  # type: ignore[arg-type]
        changed = {name for name, stamp in known.items() if stamp != _stamp(f"{self._directory}/{name}")} if with_identities else set()
        with index:
            gone = (known.keys() - present) | changed
            index.executemany("DELETE FROM personas WHERE directory = ?", [(name,) for name in gone])
        self._others = set()
        self._note(index, present - known.keys() | changed)
        settling = max(SETTLING_SECONDS, COMPARISONS_APART * (time.monotonic() - began))
        self._compared = _Compared(settling).with_change(changed_at)

    def _is_current(self) -> bool:
        compared = self._compared
        return compared is not None and compared.changed_at == _changed_at(self._directory) and time.monotonic() < compared.holds_until

    def _note(self, index: apsw.Connection, directories: set[str]) -> None:
        """Read the identities of these directories, and add those that are personas."""
        rows = []
        for folder in directories:
            try:
                name = _name_in(self._directory / folder)
                self._unreadable.discard(folder)
            except StoreError as error:
                name = None
                if folder not in self._unreadable:
                    logger.warning("%s", error)
                    self._unreadable.add(folder)
            if name is None:
                self._others.add(folder)
            else:
                self._others.discard(folder)
                path = self._directory / folder
                rows.append((folder, name, _stamp(path), fold(name), reading(fold(name)), is_encrypted(path)))
        if rows:
            with index:
                index.executemany(
                    "INSERT OR REPLACE INTO personas(directory, name, stamp, folded, sound, encrypted) VALUES (?, ?, ?, ?, ?, ?)", rows
                )


def _name_in(directory: Path) -> str | None:
    """The name of the persona in a directory, None if it is none of ours. One with an unreadable name is logged.

    Raises:
        StoreError: it can't be read.
    """
    if not is_persona(directory):
        return None
    try:
        name = identity(directory) or directory.name
    except StoreDamaged as error:
        logger.error("%s", error)
        return None
    return name if directory_name(name) == directory.name else None


def _stamp(directory: Path | str) -> str:
    """Which state of the identity file this is; empty without one."""
    try:
        stat = os.stat(f"{directory}/{IDENTITY_NAME}")  # noqa: PTH116  a path object costs as much again as the call
    except OSError:
        return ""
    return f"{stat.st_mtime_ns} {stat.st_size} {stat.st_ino}"


def _changed_at(directory: Path) -> int:
    return directory.stat().st_mtime_ns


def _opened(directory: Path) -> apsw.Connection:
    """The index file; a new one if there is none that can be used."""
    path = directory / DIRECTORY_NAME / FILE_NAME
    if not is_on_network_drive(directory):
        for attempt in (1, 2):
            try:
                path.parent.mkdir(mode=PRIVATE_DIRECTORY, exist_ok=True)
                return _prepared(apsw.Connection(str(path)), path)
            except (apsw.Error, OSError) as error:
                logger.debug("the index of personas is made again: %s", error)
                if attempt == 1:
                    for file in path.parent.glob(f"{FILE_NAME}*"):
                        with suppress(OSError):
                            file.unlink()
    return _in_memory()


def _in_memory() -> apsw.Connection:
    return _prepared(apsw.Connection(":memory:"))


def _prepared(connection: apsw.Connection, path: Path | None = None) -> apsw.Connection:
    try:
        connection.execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA secure_delete=ON; PRAGMA cache_size=-512")
        if connection.pragma("user_version") != VERSION:
            with connection:
                connection.execute(_SCHEMA)
        connection.execute("DELETE FROM personas WHERE directory = ''")  # fails where nothing can be written
        connection.execute("SELECT count(name), count(folded), count(sound) FROM personas").fetchall()
        if path:
            path.chmod(PRIVATE_FILE)
    except BaseException:
        connection.close()
        raise
    return connection
