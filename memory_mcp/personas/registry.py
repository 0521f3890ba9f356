"""The personas of one data directory: which there are, and the open ones as handles that are shared, pinned and put away."""

import difflib
import json
import logging
import os
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import apsw
from filelock import FileLock, Timeout

from memory_mcp.errors import Overloaded, StartupError, StoreDamaged, StoreError
from memory_mcp.personas.borrowed import refuse_borrowed
from memory_mcp.personas.directories import DATABASE_NAME, IDENTITY_NAME, checked_identity, complete, identity, is_persona, remove_unborn
from memory_mcp.personas.names import directory_name, fold
from memory_mcp.store import lexical, migrations, older_files
from memory_mcp.store.database import Database, immediate
from memory_mcp.store.files import refusal, sync_directory, write_atomically
from memory_mcp.store.graph.names import KnownNames
from memory_mcp.store.operations import Operation, OperationsLog
from memory_mcp.store.persona_context import FILE_NAME as CONTEXT_NAME
from memory_mcp.store.persona_context import PersonaContext

OPEN_LIMIT = 128
# Opening takes milliseconds, unless an older store is taken over or an index of words is built anew: then callers are told to
# try again, instead of holding the threads that other personas need.
OPENING_SECONDS = 2.0
PRIVATE = 0o700  # memories are nobody else's business on this machine
LOCK_NAME = ".server.lock"
LOCK_OWNER_NAME = ".server.json"

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Persona:
    """An open persona: what the pipelines take. `exists` is False for a name that only reading has asked for."""

    name: str
    database: Database
    context: PersonaContext
    log: OperationsLog
    names: KnownNames
    exists: bool = True


@dataclass(slots=True)
class _Open:
    """A place in the table. `persona` is None until the first user has opened it; the others wait at `lock`."""

    persona: Persona | None = None
    users: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


class Personas:
    """All personas of one data directory, and the lock that keeps a second server away from it."""

    def __init__(self, directory: Path, open_limit: int = OPEN_LIMIT, opening_seconds: float = OPENING_SECONDS) -> None:
        """Creates the directory if need be and takes its lock.

        Raises:
            StartupError: it can't be created or written, or another server has it.
        """
        self.directory = directory
        self._open_limit, self._opening_seconds = open_limit, opening_seconds
        self._open: OrderedDict[str, _Open] = OrderedDict()
        self._guard = threading.Lock()
        self._server_lock = _locked(directory)
        self.log = OperationsLog(directory)

    @contextmanager
    def reading(self, name: str) -> Iterator[Persona]:
        """The persona of a canonical name, pinned while the block runs. One that doesn't exist is empty, and stays uncreated."""
        with self.writing(name) if self.exists(name) else self.absent(name) as persona:
            yield persona

    @contextmanager
    def absent(self, name: str) -> Iterator[Persona]:
        """An empty persona of this name, whether or not there is another one on the disk: which isn't looked at."""
        database = Database(None)
        database.prepare(_prepare)
        try:
            yield Persona(name, database, PersonaContext(None), self.log, KnownNames(), exists=False)
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
        found = []
        for entry in self.directory.iterdir():
            if is_persona(entry):
                try:
                    name = identity(entry) or entry.name
                except StoreDamaged as error:
                    logger.error("%s", error)
                    continue
                if directory_name(name) == entry.name:
                    found.append(name)
        return sorted(found)

    def near(self, name: str, among: Iterable[str] | None = None) -> list[str]:
        """Existing names that `name` may be a slip of, the nearest first; of those in `among`, where that is given."""
        folded = {fold(known): known for known in (self.names() if among is None else among) if known != name}
        return [folded[near] for near in difflib.get_close_matches(fold(name), folded, n=3, cutoff=0.6)]

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
        for persona in {id(persona): persona for persona in idle if persona}.values():
            persona.database.close()

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
            refuse_borrowed(directory, DATABASE_NAME, IDENTITY_NAME)
            known_as = checked_identity(directory, name)
            database = Database(directory / DATABASE_NAME)
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
        return Persona(name, database, PersonaContext(directory / CONTEXT_NAME), self.log, KnownNames())

    def _bring_up_to_date(self, connection: apsw.Connection, name: str, directory: Path) -> None:
        """Prepares the file; what an older server left is copied before anything in it is changed."""
        if migrations.touches_older_tables(connection):
            kept = older_files.kept_place(self.directory, datetime.now(UTC)) / directory.name
            logger.info("%s: taking over what an older server stored; it is kept in %s", name, kept.relative_to(self.directory))
            try:
                if (directory / CONTEXT_NAME).exists():
                    older_files.keep_file(directory / CONTEXT_NAME, older_files.unused(kept / CONTEXT_NAME))
                older_files.keep_database(connection, older_files.unused(kept / DATABASE_NAME))
            except OSError as error:
                raise refusal(error, f"what an older server stored for {name} can't be copied", "Make room and start again") from error
        adopted = _prepare(connection)
        if adopted:
            self.log.append(name, adopted)
            logger.info("%s: %s memories of an older server are taken over", name, f"{adopted.metadata['memories']:,}")


def _is_to_be_tried_again(persona: Persona | None) -> bool:
    return persona is None or persona.database.unwritable is not None


def _prepare(connection: apsw.Connection) -> Operation | None:
    """Brings a file to today's schema and today's tokens; writes nothing to one that is there already. What an older server
    stored is adopted, and that is returned."""
    if not (migrations.pending(connection) or lexical.is_outdated(connection)):
        return None
    connection.pragma("foreign_keys", False)  # rows of older tables may refer to the memories, and must stay as they are
    try:
        with immediate(connection):
            adopted = migrations.migrate(connection)
            lexical.rebuild_if_outdated(connection)
    finally:
        connection.pragma("foreign_keys", True)
    return adopted


def _locked(directory: Path) -> FileLock:
    try:
        if not directory.exists():
            directory.mkdir(mode=PRIVATE, parents=True)
            logger.warning("the data directory %s did not exist: it was created, and holds no persona", directory)
        lock = FileLock(directory / LOCK_NAME, thread_local=False)  # whichever thread stops the server lets it go
        lock.acquire(timeout=0)
    except Timeout:
        raise StartupError(
            f"another server uses the data directory {directory}",
            _owner(directory),
            "Stop that one, or choose another directory with --data",
        ) from None
    except OSError as error:
        raise StartupError(
            f"the data directory {directory} can't be used",
            error.strerror or str(error),
            "Make it exist and be writable, or choose another with --data",
        ) from error
    try:
        write_atomically(directory / LOCK_OWNER_NAME, json.dumps({"process": os.getpid()}) + "\n")
    except OSError as error:  # a note for whoever finds the lock taken: nothing needs it, least of all on a full disk
        logger.warning("%s can't be written: %s", LOCK_OWNER_NAME, error.strerror)
    return lock


def _owner(directory: Path) -> str:
    try:
        return f"it is process {json.loads((directory / LOCK_OWNER_NAME).read_text(encoding='utf-8'))['process']}"
    except (OSError, ValueError, KeyError, TypeError):
        return ""
