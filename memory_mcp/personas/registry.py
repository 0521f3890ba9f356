"""The personas of one data directory, and the cache of open ones: handles are shared, pinned while in use, and evicted."""

import difflib
import logging
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import apsw

from memory_mcp.errors import Overloaded, StoreDamaged, StoreError
from memory_mcp.language.sound import reading
from memory_mcp.personas import atomic_replace, cells
from memory_mcp.personas.cells import Cell
from memory_mcp.personas.directories import (
    IDENTITY_NAME,
    checked_identity,
    complete,
    identity,
    is_persona,
    personas_among,
    refuse_shared_database,
    remove_incomplete,
)
from memory_mcp.personas.names import LAST_POOL, directory_name, fold, pool_of, sent_name
from memory_mcp.personas.persona_index import PersonaIndex
from memory_mcp.personas.recovery import finish_unfinished
from memory_mcp.personas.server_lock import LOCK_OWNER_NAME, locked
from memory_mcp.store import migrations, operations
from memory_mcp.store.files.durable_files import PRIVATE_DIRECTORY, refusal, sync_directory
from memory_mcp.store.files.encryption_keys import Keys, PersonaKey, is_encrypted
from memory_mcp.store.files.persona_context import FILE_NAME as CONTEXT_NAME
from memory_mcp.store.files.persona_context import PersonaContext
from memory_mcp.store.graph.entities.names import KnownNames
from memory_mcp.store.inspection import refuse_unknown
from memory_mcp.store.legacy import foreign_limits, further_rows, original_files
from memory_mcp.store.lexical import bm25_index
from memory_mcp.store.lexical.stored_words import TokenCounts
from memory_mcp.store.operations import Operation, OperationsLog, Rotation
from memory_mcp.store.sqlite import cipher
from memory_mcp.store.sqlite.database import DATABASE_NAME, Database, immediate

OPEN_LIMIT = 128
# Opening takes milliseconds, unless an older store is adopted or a full-text index rebuilt: then callers must try again, instead of
# blocking the threads that other personas need.
OPENING_SECONDS = 2.0
NO_KEYS = Keys()
# The log's words for rows that aren't adopted, by their name in the operation.
_NOT_ADOPTED = {"without_text": "have no text and stay in its table", "refused": "about the graph could not be adopted"}
# How long exclusive access waits for running calls.
ALONE_SECONDS = 10.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Persona:
    """An open persona, as passed to the pipelines. `exists` is False for a persona without files, which can only be read. `has_expired`: it has
    expired memories that couldn't be moved to the trash."""

    name: str
    database: Database
    context: PersonaContext
    log: OperationsLog
    names: KnownNames
    words: TokenCounts
    exists: bool = True
    has_expired: bool = False


@dataclass(slots=True)
class _Open:
    """A cache entry. `persona` is None until the first user has opened it; others wait for `lock`."""

    persona: Persona | None = None
    users: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


class Personas:
    """All personas of one data directory, which is locked against a second server."""

    def __init__(
        self,
        directory: Path,
        open_limit: int = OPEN_LIMIT,
        opening_seconds: float = OPENING_SECONDS,
        alone_seconds: float = ALONE_SECONDS,
        keys: Keys = NO_KEYS,
        log_rotation: Rotation = "drop",
        cell: Cell | None = None,
        *,
        during_split: bool = False,
    ) -> None:
        """Create the directory if necessary, lock it, and finish interrupted operations. `keys` open encrypted personas. `cell`: that of
        the configuration, None for the one that the directory is.

        Raises:
            StartupError: the directory can't be created or written, another server uses it, or it is another cell.
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
        atomic_replace.finish_interrupted(directory)
        try:
            self.cell = cells.taken(directory, cell, lambda: names_in(directory), during_split=during_split)
        except BaseException:
            self._server_lock.release()
            raise
        self.index = PersonaIndex(directory)
        self.log = OperationsLog(directory, log_rotation)

    @contextmanager
    def reading(self, name: str) -> Iterator[Persona]:
        """The persona of a canonical name, pinned during the block. A persona that doesn't exist is empty and isn't created."""
        if name in self._open or self.exists(name):  # files of an open one that were removed are noticed when it is pinned
            entry = self._pin(name)
            try:
                if entry.persona or self.exists(name):  # else it was removed before it was pinned, and opening would create an empty one
                    yield entry.persona or self._opened(name, entry)
                    return
            finally:
                self._unpin(name, entry)
        with self.absent(name) as persona:
            yield persona

    @contextmanager
    def absent(self, name: str) -> Iterator[Persona]:
        """An empty persona of this name in memory, whether or not one exists on disk."""
        self.cell.require(name)
        database = Database(None)
        database.prepare(copy_empty_store)
        try:
            yield Persona(name, database, PersonaContext(None), self.log, KnownNames(), TokenCounts(), exists=False)
        finally:
            database.close()

    @contextmanager
    def writing(self, name: str) -> Iterator[Persona]:
        """The persona of a canonical name, created if necessary, pinned during the block.

        Raises:
            Overloaded: another caller is migrating it, which takes longer than `opening_seconds`.
            PersonaElsewhere: it belongs to another cell.
        """
        self.cell.require(name)
        entry = self._pin(name)
        try:
            yield entry.persona or self._opened(name, entry)
        finally:
            self._unpin(name, entry)

    def exists(self, name: str) -> bool:
        """Whether a persona with this canonical name exists.

        Raises:
            StoreError: its directory can't be read. It is not made anew.
        """
        try:
            return is_persona(self.path_of(name).parent)
        except StoreError as error:
            raise StoreError("{} can't be opened: {}", error.why, error.do, repr(name), error.what) from error

    def is_listed(self, name: str) -> bool:
        """Whether a persona with this canonical name exists and its directory can be read, as those of `names`."""
        with suppress(StoreError):
            return self.exists(name)
        return False

    def path_of(self, name: str) -> Path:
        """The path of the database of a canonical name, whether or not it exists. Every way from a name to files leads through here.

        Raises:
            PersonaElsewhere: the persona belongs to another cell.
        """
        self.cell.require(name)
        return self.directory / directory_name(name) / DATABASE_NAME

    def names(self, after: str = "", limit: int | None = None) -> list[str]:
        """The names of all personas, sorted; only those after a name, and at most so many."""
        return self.stores(max(after, LAST_POOL), limit)

    def count(self) -> int:
        """How many personas there are."""
        return self.index.count(LAST_POOL)

    def stores(self, after: str = "", limit: int | None = None) -> list[str]:
        """The names of all stores, those of pools first; only those after a name, and at most so many."""
        if self.cell.is_whole:
            return self.index.names(after, limit)
        return [name for name in self.index.names(after) if self.cell.owns(name)][:limit]

    def similar_names(self, name: str, among: Iterable[str] | None = None) -> list[str]:
        """Existing names (of those in `among`, if given) that `name` may be a misspelling of, the most similar first: by their letters, then by
        their reading in kana or Latin letters."""
        near = (known for known in self.index.near(name) if not pool_of(known) and self.cell.owns(known))
        others = [known for known in (near if among is None else among) if known != name]
        folded = {fold(known): known for known in others} | {fold(_decoded(known)): known for known in others if _decoded(known)}
        read = {reading(spelling): known for spelling, known in folded.items()}
        alike = [folded[near] for near in difflib.get_close_matches(fold(name), folded, n=3, cutoff=0.6)]
        alike += [read[near] for near in difflib.get_close_matches(reading(name), read, n=3, cutoff=0.8)]
        return list(dict.fromkeys(alike))[:3]

    @contextmanager
    def exclusive(self, *names: str) -> Iterator[None]:
        """Exclusive access to the files of these personas, which aren't open during the block. Other callers get `Overloaded` meanwhile.

        Raises:
            Overloaded: a persona stays in use for longer than `alone_seconds`.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: self._shut.isdisjoint(names), self._alone_seconds):
                raise _being_moved(names[0])
            self._shut.update(names)
        try:
            with self._changed:
                if not self._changed.wait_for(lambda: not any(self._in_use(name) for name in names), self._alone_seconds):
                    raise Overloaded("{} is in use", "a long call is running", "Try again in a moment", names[0])
                entries = [self._open.pop(name) for name in names if name in self._open]
            for entry in entries:
                if entry.persona:
                    entry.persona.database.close()
            yield
        finally:
            self.index.changed()
            with self._changed:
                self._shut.difference_update(names)
                self._changed.notify_all()

    def _in_use(self, name: str) -> bool:
        return name in self._closing or (name in self._open and bool(self._open[name].users))

    def close(self) -> None:
        """Close every persona and release the lock."""
        with self._guard:
            entries = list(self._open.values())
            self._open.clear()
        for entry in entries:
            if entry.persona:
                entry.persona.database.close()
        self.log.close()
        self.index.close()
        (self.directory / LOCK_OWNER_NAME).unlink(missing_ok=True)
        self._server_lock.release()

    def _pin(self, name: str) -> _Open:
        """The pinned cache entry of a persona; a new one if its files were moved, removed, or replaced by another program."""
        with self._guard:
            if name in self._shut:
                raise _being_moved(name)
            entry = self._open.get(name)
            stale = entry if entry and entry.persona and entry.persona.database.replaced else None
            if entry is None or stale:
                entry = self._open[name] = _Open()
            self._open.move_to_end(name)
            entry.users += 1
            unused = stale.persona if stale and not stale.users else None
        if stale:
            logger.warning("the files of %s were replaced or removed while they were open: the current files are opened", name)
        if unused:
            unused.database.close()
        return entry

    def _unpin(self, name: str, entry: _Open) -> None:
        """Close the least recently used personas without users until few enough are open. Also close those that failed to open or are
        read-only, which the next call tries again, and those whose entry was replaced."""
        with self._guard:
            entry.users -= 1
            surplus = max(len(self._open) - self._open_limit, 0)
            unused = [other for other, candidate in self._open.items() if not candidate.users]
            failed = [other for other in unused if _should_reopen(self._open[other].persona)]
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
        """Open a persona once: concurrent callers for it wait, those for others don't."""
        if not entry.lock.acquire(timeout=self._opening_seconds):
            raise Overloaded("the memories of {} are being migrated", "", "Try again in a moment; nothing is lost", name)
        try:
            entry.persona = entry.persona or self._open_persona(name)
            return entry.persona
        finally:
            entry.lock.release()

    def _open_persona(self, name: str) -> Persona:
        directory = self.path_of(name).parent
        is_new = not directory.exists()
        try:
            if is_new:
                with self.index.creating(directory.name):
                    directory.mkdir(mode=PRIVATE_DIRECTORY)
                    sync_directory(self.directory)
            refuse_shared_database(directory, DATABASE_NAME, IDENTITY_NAME)
            stored_name = checked_identity(directory, name)
            key = self._key(directory)
            refuse_unknown(directory / DATABASE_NAME)
            database = Database(directory / DATABASE_NAME, key)
            try:
                # Pages can't be copied into an encrypted file.
                fresh = is_new and key is None and not database.unwritable
                database.prepare(copy_empty_store if fresh else lambda connection: self._migrate(connection, name, directory))
                if not database.unwritable:
                    database.prepare(lambda connection: operations.note_name(connection, name))
                    complete(directory, stored_name, name)
            except BaseException:
                database.close()
                raise
        except (OSError, StoreError) as error:
            if is_new:
                remove_incomplete(directory)
            if isinstance(error, OSError):
                raise refusal(error, f"{name!r} can't be opened", "Make the data directory exist and be writable for the server") from error
            raise
        return Persona(name, database, PersonaContext(directory / CONTEXT_NAME, key), self.log, KnownNames(), TokenCounts())

    def _key(self, directory: Path) -> PersonaKey | None:
        """The key of an encrypted persona; a new persona gets one before its database is created."""
        if is_encrypted(directory):
            if cipher.is_plain(directory / DATABASE_NAME):
                raise StoreDamaged(
                    "{} has a key and a database that is not encrypted", "", "Restore the whole directory from a backup", directory.name
                )
            return self.keys.of(directory)
        is_new = not (directory / DATABASE_NAME).exists()
        return self.keys.make(directory) if is_new and self.keys.for_new else None

    def _migrate(self, connection: apsw.Connection, name: str, directory: Path) -> None:
        """Migrate the database; the files of an older server are copied first."""
        migrations.check_schema(connection, DATABASE_NAME)
        if not migrations.touches_older_tables(connection):
            self._note_adopted(name, prepare(connection))
            return
        with foreign_limits.bounded(connection):
            kept = original_files.adoption_directory(self.directory, datetime.now(UTC)) / directory.name
            logger.info("%s: adopting the store of an older server; a copy is kept in %s", name, kept.relative_to(self.directory))
            try:
                if (directory / CONTEXT_NAME).exists():
                    original_files.keep_file(directory / CONTEXT_NAME, original_files.unused(kept / CONTEXT_NAME))
                original_files.keep_database(connection, original_files.unused(kept / DATABASE_NAME))
                _fill_context(PersonaContext(directory / CONTEXT_NAME), connection)
            except OSError as error:
                raise refusal(error, f"the older server's store of {name} can't be copied", "Make room and start again") from error
            self._note_adopted(name, prepare(connection))

    def _note_adopted(self, name: str, adopted: Operation | None) -> None:
        if adopted:
            self.log.append(name, adopted)
            counts = {field: f"{adopted.metadata[field]:,}" for field in ("memories", "in_trash")}
            trash = f", and {counts['in_trash']} into the trash" if adopted.metadata["in_trash"] else ""
            logger.info("%s: %s memories of an older server were adopted%s", name, counts["memories"], trash)
            for rows, what in _NOT_ADOPTED.items():
                if count := adopted.metadata[rows]["count"]:
                    logger.warning(
                        "%s: %s rows of an older server %s: %s", name, f"{count:,}", what, ", ".join(adopted.metadata[rows]["first"])
                    )


def _fill_context(context: PersonaContext, connection: apsw.Connection) -> None:
    """Write what another program's database knows of the persona, before its tables are converted: a crash repeats both."""
    fields = further_rows.context(connection)
    try:
        if fields and (missing := context.missing(fields)):
            context.update(missing)
    except StoreDamaged as error:  # its memories can be served
        logger.warning("what the older database knows of the persona isn't taken over: %s", error)


def names_in(directory: Path) -> list[str]:
    """The names of all stores of a data directory, of personas and of pools, sorted. One with an unreadable name is logged and skipped."""
    names = []
    personas, unreadable = personas_among(directory.iterdir())
    for error in unreadable.values():
        logger.warning("%s", error)
    for entry in personas:
        try:
            name = identity(entry) or entry.name
        except StoreError as error:
            logger.error("%s", error)
            continue
        if directory_name(name) == entry.name:
            names.append(name)
    return sorted(names)


def _decoded(name: str) -> str:
    """The name that this one encodes, as older servers stored it; empty if it is none."""
    try:
        decoded = sent_name(name)
    except UnicodeError:
        return ""
    return decoded if decoded != name else ""


def _being_moved(name: str) -> Overloaded:
    return Overloaded("the files of {} are being moved", "", "Try again in a moment; nothing is lost", name)


def _should_reopen(persona: Persona | None) -> bool:
    return persona is None or persona.database.unwritable is not None


def prepare(connection: apsw.Connection) -> Operation | None:
    """Apply pending migrations and rebuild an outdated full-text index; an up-to-date file isn't written to. Returns the operation to
    log if an older server's tables were adopted."""
    migrations.check_schema(connection, Path(connection.filename).name)
    if not (migrations.pending(connection) or bm25_index.is_outdated(connection)):
        return None
    connection.pragma("foreign_keys", False)  # rows of older tables may reference memories and must stay unchanged
    try:
        with immediate(connection):
            adopted = migrations.migrate(connection)
            bm25_index.rebuild_if_outdated(connection)
    finally:
        connection.pragma("foreign_keys", True)
    return adopted


def copy_empty_store(connection: apsw.Connection) -> None:
    """Make a new file an empty store, in one commit: copying its pages costs a twentieth of what all migrations do."""
    with closing(apsw.Connection(":memory:")) as empty:
        empty.deserialize("main", _empty_store(tuple(migrations.MIGRATIONS)))
        with connection.backup("main", empty, "main") as copy:
            copy.step()


@lru_cache(maxsize=1)
def _empty_store(_made_by: tuple[Any, ...]) -> bytes:
    with closing(apsw.Connection(":memory:")) as connection:
        prepare(connection)
        return connection.serialize("main")


@contextmanager
def open_read_only(data_directory: Path, name: str, keys: Keys) -> Iterator[Persona]:
    """Open an existing persona for reading while a server may have it open, without migrating it: for backups.

    Raises:
        KeyRefused: it is encrypted, and the master key isn't configured.
        StoreError: it can't be read.
    """
    directory = data_directory / directory_name(name)
    checked_identity(directory, name)
    key = keys.of(directory)
    database = Database(directory / DATABASE_NAME, key)
    log = OperationsLog(data_directory)
    try:
        yield Persona(name, database, PersonaContext(directory / CONTEXT_NAME, key), log, KnownNames(), TokenCounts())
    finally:
        database.close()
        log.close()
