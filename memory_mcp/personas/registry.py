"""The personas of one data directory: which there are, and the open ones as handles that are shared, pinned and put away."""

import difflib
import logging
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import apsw

from memory_mcp.errors import Overloaded, StoreDamaged, StoreError
from memory_mcp.personas import atomic_replace
from memory_mcp.personas.directories import (
    DATABASE_NAME,
    IDENTITY_NAME,
    checked_identity,
    complete,
    identity,
    is_persona,
    refuse_shared_database,
    remove_unborn,
)
from memory_mcp.personas.names import directory_name, fold
from memory_mcp.personas.recovery import finish_unfinished
from memory_mcp.personas.server_lock import LOCK_OWNER_NAME, PRIVATE, locked
from memory_mcp.store import migrations
from memory_mcp.store.files.durable_files import refusal, sync_directory
from memory_mcp.store.files.encryption_keys import Keys, PersonaKey, is_encrypted
from memory_mcp.store.files.persona_context import FILE_NAME as CONTEXT_NAME
from memory_mcp.store.files.persona_context import PersonaContext
from memory_mcp.store.graph.entities.names import KnownNames
from memory_mcp.store.legacy import original_files
from memory_mcp.store.lexical import bm25_index
from memory_mcp.store.lexical.token_frequencies import WordCounts
from memory_mcp.store.operations import Operation, OperationsLog
from memory_mcp.store.sqlite import cipher
from memory_mcp.store.sqlite.database import Database, immediate

OPEN_LIMIT = 128
# Opening takes milliseconds, unless an older store is taken over or an index of words is built anew: then callers are told to
# try again, instead of holding the threads that other personas need.
OPENING_SECONDS = 2.0
NO_KEYS = Keys()
# Whoever wants a persona for itself waits so long for the calls that are under way.
ALONE_SECONDS = 10.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Persona:
    """An open persona: what the pipelines take. `exists` is False for a name that only reading has asked for."""

    name: str
    database: Database
    context: PersonaContext
    log: OperationsLog
    names: KnownNames
    words: WordCounts
    exists: bool = True


@dataclass(slots=True)
class _Open:
    """A place in the table. `persona` is None until the first user has opened it; the others wait at `lock`."""

    persona: Persona | None = None
    users: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


class Personas:
    """All personas of one data directory, and the lock that keeps a second server away from it."""

    def __init__(
        self,
        directory: Path,
        open_limit: int = OPEN_LIMIT,
        opening_seconds: float = OPENING_SECONDS,
        alone_seconds: float = ALONE_SECONDS,
        keys: Keys = NO_KEYS,
    ) -> None:
        """Creates the directory if need be, takes its lock, and ends what a crash has left half done. `keys` open what is encrypted.

        Raises:
            StartupError: it can't be created or written, or another server has it.
        """
        self.directory, self.keys = directory, keys
        self._open_limit, self._opening_seconds, self._alone_seconds = open_limit, opening_seconds, alone_seconds
        self._open: OrderedDict[str, _Open] = OrderedDict()
        self._guard = threading.Lock()
        self._changed = threading.Condition(self._guard)
        self._shut: set[str] = set()
        self._closing: list[str] = []
        self._server_lock = locked(directory)
        finish_unfinished(directory)
        atomic_replace.settle(directory)
        self.log = OperationsLog(directory)

    @contextmanager
    def reading(self, name: str) -> Iterator[Persona]:
        """The persona of a canonical name, pinned while the block runs. One that doesn't exist is empty, and stays uncreated."""
        if self.exists(name):
            entry = self._pin(name)
            try:
                if entry.persona or self.exists(name):  # else it went before it was pinned, and opening it would make another, empty one
                    yield entry.persona or self._opened(name, entry)
                    return
            finally:
                self._unpin(name, entry)
        with self.absent(name) as persona:
            yield persona

    @contextmanager
    def absent(self, name: str) -> Iterator[Persona]:
        """An empty persona of this name, whether or not there is another one on the disk: which isn't looked at."""
        database = Database(None)
        database.prepare(prepare)
        try:
            yield Persona(name, database, PersonaContext(None), self.log, KnownNames(), WordCounts(), exists=False)
        finally:
            database.close()

    @contextmanager
    def writing(self, name: str) -> Iterator[Persona]:
        """The persona of a canonical name, created if need be, pinned while the block runs.

        Raises:
            Overloaded: another caller is bringing it up to date, which takes longer than a moment.
        """
        entry = self._pin(name)
        try:
            yield entry.persona or self._opened(name, entry)
        finally:
            self._unpin(name, entry)

    def exists(self, name: str) -> bool:
        """Whether anything was ever stored under this canonical name."""
        return is_persona(self.path_of(name).parent)

    def path_of(self, name: str) -> Path:
        """Where the database of a canonical name is, or would be."""
        return self.directory / directory_name(name) / DATABASE_NAME

    def names(self) -> list[str]:
        """The names of all personas, sorted."""
        return names_in(self.directory)

    def near(self, name: str, among: Iterable[str] | None = None) -> list[str]:
        """Existing names that `name` may be a slip of, the nearest first; of those in `among`, where that is given."""
        folded = {fold(known): known for known in (self.names() if among is None else among) if known != name}
        return [folded[near] for near in difflib.get_close_matches(fold(name), folded, n=3, cutoff=0.6)]

    @contextmanager
    def alone(self, *names: str) -> Iterator[None]:
        """Nobody has these personas open while the block runs: their files may be moved. Whoever asks for one meanwhile is told to wait.

        Raises:
            Overloaded: they are in use for longer than a moment.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: self._shut.isdisjoint(names), self._alone_seconds):
                raise _shut_out(names[0])
            self._shut.update(names)
        try:
            with self._changed:
                if not self._changed.wait_for(lambda: not any(self._in_use(name) for name in names), self._alone_seconds):
                    raise Overloaded(f"{names[0]} is in use", "a call is under way that takes long", "Try again in a moment")
                entries = [self._open.pop(name) for name in names if name in self._open]
            for entry in entries:
                if entry.persona:
                    entry.persona.database.close()
            yield
        finally:
            with self._changed:
                self._shut.difference_update(names)
                self._changed.notify_all()

    def _in_use(self, name: str) -> bool:
        return name in self._closing or (name in self._open and bool(self._open[name].users))

    def close(self) -> None:
        """Closes every persona and lets the next server in."""
        with self._guard:
            entries = list(self._open.values())
            self._open.clear()
        for entry in entries:
            if entry.persona:
                entry.persona.database.close()
        self.log.close()
        (self.directory / LOCK_OWNER_NAME).unlink(missing_ok=True)
        self._server_lock.release()

    def _pin(self, name: str) -> _Open:
        """The persona's place in the table, a new one if its files were moved, removed or replaced from outside since it was opened."""
        with self._guard:
            if name in self._shut:
                raise _shut_out(name)
            entry = self._open.get(name)
            stale = entry if entry and entry.persona and entry.persona.database.replaced else None
            if entry is None or stale:
                entry = self._open[name] = _Open()
            self._open.move_to_end(name)
            entry.users += 1
            unused = stale.persona if stale and not stale.users else None
        if stale:
            logger.warning("the files of %s were replaced or removed while they were open: what is there now is opened", name)
        if unused:
            unused.database.close()
        return entry

    def _unpin(self, name: str, entry: _Open) -> None:
        """Puts the least recently used personas that nobody uses away, until few enough are open; so are those that failed to open or
        can only be read, which may be over at the next call, and those whose place another has taken."""
        with self._guard:
            entry.users -= 1
            surplus = max(len(self._open) - self._open_limit, 0)
            unused = [other for other, place in self._open.items() if not place.users]
            failed = [other for other in unused if _is_to_be_tried_again(self._open[other].persona)]
            idle = [self._open.pop(other).persona for other in {*unused[:surplus], *failed}]
            if not entry.users and self._open.get(name) is not entry:
                idle.append(entry.persona)
            closed = {id(persona): persona for persona in idle if persona}.values()
            self._closing += [persona.name for persona in closed]
            if self._shut:
                self._changed.notify_all()
        for persona in closed:
            persona.database.close()
            with self._changed:
                self._closing.remove(persona.name)
                self._changed.notify_all()

    def _opened(self, name: str, entry: _Open) -> Persona:
        """One caller opens it; others that want this persona wait, and nobody else does."""
        if not entry.lock.acquire(timeout=self._opening_seconds):
            raise Overloaded(f"the memories of {name} are being brought up to date", "", "Try again in a moment; nothing is lost")
        try:
            entry.persona = entry.persona or self._open_persona(name)
            return entry.persona
        finally:
            entry.lock.release()

    def _open_persona(self, name: str) -> Persona:
        directory = self.directory / directory_name(name)
        is_new = not directory.exists()
        try:
            if is_new:
                directory.mkdir(mode=PRIVATE)
                sync_directory(self.directory)
            refuse_shared_database(directory, DATABASE_NAME, IDENTITY_NAME)
            known_as = checked_identity(directory, name)
            key = self._key(directory)
            database = Database(directory / DATABASE_NAME, key)
            try:
                database.prepare(lambda connection: self._bring_up_to_date(connection, name, directory))
                if not database.unwritable:
                    complete(directory, known_as, name)
            except BaseException:
                database.close()
                raise
        except (OSError, StoreError) as error:
            if is_new:
                remove_unborn(directory)
            if isinstance(error, OSError):
                raise refusal(error, f"{name!r} can't be opened", "Make the data directory exist and be writable for the server") from error
            raise
        return Persona(name, database, PersonaContext(directory / CONTEXT_NAME, key), self.log, KnownNames(), WordCounts())

    def _key(self, directory: Path) -> PersonaKey | None:
        """The key of an encrypted persona. Whether a new one is encrypted is settled before its database has a byte."""
        if is_encrypted(directory):
            if cipher.is_plain(directory / DATABASE_NAME):
                raise StoreDamaged(
                    f"{directory.name} has a key and a database that is not encrypted", "", "Restore the whole directory from a backup"
                )
            return self.keys.of(directory)
        is_new = not (directory / DATABASE_NAME).exists()
        return self.keys.make(directory) if is_new and self.keys.for_new else None

    def _bring_up_to_date(self, connection: apsw.Connection, name: str, directory: Path) -> None:
        """Prepares the file; what an older server left is copied before anything in it is changed."""
        if migrations.touches_older_tables(connection):
            kept = original_files.kept_place(self.directory, datetime.now(UTC)) / directory.name
            logger.info("%s: taking over what an older server stored; it is kept in %s", name, kept.relative_to(self.directory))
            try:
                if (directory / CONTEXT_NAME).exists():
                    original_files.keep_file(directory / CONTEXT_NAME, original_files.unused(kept / CONTEXT_NAME))
                original_files.keep_database(connection, original_files.unused(kept / DATABASE_NAME))
            except OSError as error:
                raise refusal(error, f"what an older server stored for {name} can't be copied", "Make room and start again") from error
        adopted = prepare(connection)
        if adopted:
            self.log.append(name, adopted)
            logger.info("%s: %s memories of an older server are taken over", name, f"{adopted.metadata['memories']:,}")


def names_in(directory: Path) -> list[str]:
    """The names of all personas of a data directory, sorted. One whose name can't be read is logged and left out."""
    found = []
    for entry in directory.iterdir():
        if is_persona(entry):
            try:
                name = identity(entry) or entry.name
            except StoreDamaged as error:
                logger.error("%s", error)
                continue
            if directory_name(name) == entry.name:
                found.append(name)
    return sorted(found)


def _shut_out(name: str) -> Overloaded:
    return Overloaded(f"the files of {name} are being moved", "", "Try again in a moment; nothing is lost")


def _is_to_be_tried_again(persona: Persona | None) -> bool:
    return persona is None or persona.database.unwritable is not None


def prepare(connection: apsw.Connection) -> Operation | None:
    """Brings a file to today's schema and today's tokens; writes nothing to one that is there already. What an older server
    stored is adopted, and that is returned."""
    if not (migrations.pending(connection) or bm25_index.is_outdated(connection)):
        return None
    connection.pragma("foreign_keys", False)  # rows of older tables may refer to the memories, and must stay as they are
    try:
        with immediate(connection):
            adopted = migrations.migrate(connection)
            bm25_index.rebuild_if_outdated(connection)
    finally:
        connection.pragma("foreign_keys", True)
    return adopted


@contextmanager
def open_read_only(data_directory: Path, name: str, keys: Keys) -> Iterator[Persona]:
    """The persona of a canonical name, which exists. It is not brought up to date; nothing is to be written to it.

    Raises:
        KeyRefused: it is encrypted, and its key is not there.
        StoreError: it can't be read.
    """
    directory = data_directory / directory_name(name)
    checked_identity(directory, name)
    key = keys.of(directory)
    database = Database(directory / DATABASE_NAME, key)
    log = OperationsLog(data_directory)
    try:
        yield Persona(name, database, PersonaContext(directory / CONTEXT_NAME, key), log, KnownNames(), WordCounts())
    finally:
        database.close()
        log.close()
