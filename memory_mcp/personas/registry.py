"""The personas of one data directory: which there are, and the open ones as handles that are shared, pinned and put away."""

import difflib
import json
import logging
import os
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import apsw
from filelock import FileLock, Timeout

from memory_mcp.errors import StartupError, StoreDamaged
from memory_mcp.personas.borrowed import refuse_borrowed
from memory_mcp.personas.names import directory_name, fold
from memory_mcp.store import lexical, migrations
from memory_mcp.store.database import Database, immediate
from memory_mcp.store.files import refusal, sync_directory, write_atomically
from memory_mcp.store.operations import OperationsLog
from memory_mcp.store.persona_context import FILE_NAME as CONTEXT_NAME
from memory_mcp.store.persona_context import PersonaContext

OPEN_LIMIT = 128
PRIVATE = 0o700  # memories are nobody else's business on this machine
DATABASE_NAME = "memory.sqlite"
IDENTITY_NAME = "persona.json"
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
    exists: bool = True


@dataclass(slots=True)
class _Open:
    """A place in the table. `persona` is None until the first user has opened it; the others wait at `lock`."""

    persona: Persona | None = None
    users: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


class Personas:
    """All personas of one data directory, and the lock that keeps a second server away from it."""

    def __init__(self, directory: Path, open_limit: int = OPEN_LIMIT) -> None:
        """Creates the directory if need be and takes its lock.

        Raises:
            StartupError: it can't be created or written, or another server has it.
        """
        self.directory = directory
        self._open_limit = open_limit
        self._open: OrderedDict[str, _Open] = OrderedDict()
        self._guard = threading.Lock()
        self._server_lock = _locked(directory)
        self._log = OperationsLog(directory)

    @contextmanager
    def reading(self, name: str) -> Iterator[Persona]:
        """The persona of a canonical name, pinned while the block runs. One that doesn't exist is empty, and stays uncreated."""
        if not self.exists(name):
            database = Database(None)
            database.prepare(_prepare)
            try:
                yield Persona(name, database, PersonaContext(None), self._log, exists=False)
            finally:
                database.close()
            return
        with self.writing(name) as persona:
            yield persona

    @contextmanager
    def writing(self, name: str) -> Iterator[Persona]:
        """The persona of a canonical name, created if need be, pinned while the block runs."""
        entry = self._pin(name)
        try:
            with entry.lock:  # one caller opens it; others that want this persona wait, and nobody else does
                persona = entry.persona = entry.persona or self._open_persona(name)
            yield persona
        finally:
            self._unpin(name, entry)

    def exists(self, name: str) -> bool:
        """Whether anything was ever stored under this canonical name."""
        return (self.directory / directory_name(name) / DATABASE_NAME).exists()

    def names(self) -> list[str]:
        """The names of all personas, sorted."""
        found = []
        for entry in self.directory.iterdir():
            if (entry / DATABASE_NAME).exists():
                try:
                    name = _identity(entry) or entry.name
                except StoreDamaged as error:
                    logger.error("%s", error)
                    continue
                if directory_name(name) == entry.name:
                    found.append(name)
        return sorted(found)

    def near(self, name: str) -> list[str]:
        """Existing names that `name` may be a slip of, the nearest first."""
        folded = {fold(known): known for known in self.names() if known != name}
        return [folded[near] for near in difflib.get_close_matches(fold(name), folded, n=3, cutoff=0.6)]

    def close(self) -> None:
        """Closes every persona and lets the next server in."""
        with self._guard:
            entries = list(self._open.values())
            self._open.clear()
        for entry in entries:
            if entry.persona:
                entry.persona.database.close()
        self._log.close()
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
        """Puts the least recently used personas that nobody uses away, until few enough are open; so are those that failed to open,
        and those whose place another has taken."""
        with self._guard:
            entry.users -= 1
            surplus = max(len(self._open) - self._open_limit, 0)
            unused = [other for other, place in self._open.items() if not place.users]
            failed = [other for other in unused if self._open[other].persona is None]
            idle = [self._open.pop(other).persona for other in {*unused[:surplus], *failed}]
            if not entry.users and self._open.get(name) is not entry:
                idle.append(entry.persona)
        for persona in {id(persona): persona for persona in idle if persona}.values():
            persona.database.close()

    def _open_persona(self, name: str) -> Persona:
        directory = self.directory / directory_name(name)
        try:
            if not directory.exists():
                directory.mkdir(mode=PRIVATE)
                sync_directory(self.directory)
            refuse_borrowed(directory, DATABASE_NAME, IDENTITY_NAME)
            known_as = _identity(directory)
            if known_as is None:
                write_atomically(directory / IDENTITY_NAME, json.dumps({"name": name}, ensure_ascii=False) + "\n")
            elif known_as != name:
                raise StoreDamaged(
                    f"the directory of {name!r} says that it belongs to {known_as!r}",
                    "",
                    f"Restore the right {IDENTITY_NAME} in {directory.name}",
                )
        except OSError as error:
            with suppress(OSError):
                directory.rmdir()  # only if it is empty: nothing half made stays
            raise refusal(error, f"{name!r} can't be opened", "Make the data directory exist and be writable for the server") from error
        database = Database(directory / DATABASE_NAME)
        try:
            database.prepare(_prepare)
        except BaseException:
            database.close()
            raise
        return Persona(name, database, PersonaContext(directory / CONTEXT_NAME), self._log)


def _prepare(connection: apsw.Connection) -> None:
    """Brings a file to today's schema and today's tokens; writes nothing to one that is there already."""
    if migrations.pending(connection) or lexical.is_outdated(connection):
        with immediate(connection):
            migrations.migrate(connection)
            lexical.rebuild_if_outdated(connection)


def _identity(directory: Path) -> str | None:
    """The name that a persona's directory says it has; None where an older server made it, which didn't say."""
    try:
        name = json.loads((directory / IDENTITY_NAME).read_text(encoding="utf-8"))["name"]
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreDamaged(
            f"{IDENTITY_NAME} in {directory.name} can't be read",
            getattr(error, "strerror", None) or str(error),
            'Restore it: {"name": "the exact name"}',
        ) from error
    return str(name)


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
