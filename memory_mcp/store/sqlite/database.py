"""One persona's SQLite file: many readers, and one writer thread that commits all waiting writes together.

Competing connections starve each other (worst wait 4 s); one thread that takes all waiting writes into one transaction
makes twice the commits and waits 22 ms at worst. Measured: docs/decisions/0003-one-writer-group-commit.md.
"""

import logging
import queue
import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import apsw

from memory_mcp.errors import Overloaded, StoreDamaged, StoreError
from memory_mcp.store.files.encryption_keys import PersonaKey
from memory_mcp.store.sqlite import cipher, network_drives
from memory_mcp.store.sqlite.errors import shown_name, translate, translated_errors
from memory_mcp.store.sqlite.reading import ReaderPool

T = TypeVar("T")
Work = Callable[[apsw.Connection], Any]

# The database file in a persona's directory, and its entry in a backup.
DATABASE_NAME = "memory.sqlite"
BUSY_TIMEOUT_MS = 5_000
GROUP_COMMIT_LIMIT = 256
WAITING_WRITES_LIMIT = 2_000

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Write:
    work: Work
    result: "Future[Any]"
    alone: bool  # run outside of any transaction
    # What a call has set for its thread, such as who calls, holds on the writer's thread too.
    context: Context = field(default_factory=copy_context)


class Database:
    """An open SQLite file. `read` gives a connection inside one snapshot, `write` runs a function in the next commit.

    `unwritable` is the reason why the file could only be opened for reading, such as a full disk; reopen the file to check whether
    the reason still applies. Once SQLite reports damage, every call is refused, because a damaged file may return wrong rows.
    """

    def __init__(self, path: Path | None, key: PersonaKey | None = None) -> None:
        """Open the file, or create it; no schema is applied. A `path` of None opens an empty database in memory. With a `key`
        the file is encrypted.

        Raises:
            StoreError: the file can't be opened, or isn't an SQLite file.
        """
        self.unwritable: StoreError | None = None
        self._commits = 0
        self._kept: dict[str, tuple[object, Any]] = {}
        self.key = key
        self._damage: StoreDamaged | None = None
        self.path = path or Path("new persona", "memory")
        self._location = str(path) if path else f"file:/{uuid.uuid4().hex}?vfs=memdb"
        # Only one thread at a time has a connection of the pool: SQLite need not lock it in each step, which costs a search a twentieth.
        # The writing one keeps its lock: an error may take a statement of it to another thread.
        self._readers = ReaderPool(partial(self._connect, apsw.SQLITE_OPEN_NOMUTEX))
        self._writes: queue.Queue[_Write | None] = queue.Queue(maxsize=WAITING_WRITES_LIMIT)
        self._gate = threading.Lock()
        self._writer: threading.Thread | None = None
        self._closed = False
        self._flags = apsw.SQLITE_OPEN_READWRITE
        with translated_errors(self.path):
            try:
                self._write_connection = self._open_for_writing()
            except (apsw.FullError, apsw.IOError, apsw.CantOpenError, apsw.ReadOnlyError) as error:
                self._write_connection = self._open_for_reading(error)
        self.file_id = file_id(path) if path else None

    @property
    def replaced(self) -> bool:
        """Whether the path now leads to another file or to none, so that writes to this one would be lost."""
        return self.file_id is not None and file_id(self.path) != self.file_id

    def prepare(self, work: Work) -> None:
        """Run `work` on the writing connection before the file is used otherwise: for migrations.

        Raises:
            StoreError: it can't be used. Whatever fails now is the fault of what is in the file.
        """
        try:
            with self._remember_damage():
                try:
                    work(self._write_connection)
                except apsw.ReadOnlyError as error:
                    raise self.unwritable or error from error
        except (apsw.Error, ArithmeticError, LookupError, RecursionError, TypeError, ValueError) as error:
            raise StoreError("the database of {} can't be used", "{}", "See `memory-mcp doctor`", shown_name(self.path), error) from error

    @contextmanager
    def read(self) -> Iterator[apsw.Connection]:
        """A connection that sees one snapshot of the file until the block ends."""
        # An APSW connection as a context manager is a savepoint: one snapshot.
        with self._remember_damage(), self._readers.borrow() as connection, connection:
            yield connection

    @contextmanager
    def read_briefly(self) -> Iterator[apsw.Connection]:
        """Like `read`, for short and frequent reads: only a few run at a time. Not to be nested."""
        with self._readers.limiter, self._remember_damage(), self._readers.borrow() as connection, connection:
            yield connection

    @contextmanager
    def read_statement(self) -> Iterator[apsw.Connection]:
        """Like `read_briefly`, for a single statement, which is a snapshot of its own: it is not begun and ended by two more."""
        with self._readers.limiter, self._remember_damage(), self._readers.borrow() as connection:
            yield connection

    def kept(self, what: str, read: Callable[[], T], state: object = None) -> T:
        """The result of `read`, kept until the next commit here or another `state`. Changes by other programs are also seen only then."""
        current = (self._commits, state)
        known = self._kept.get(what)
        if known is None or known[0] != current:
            known = self._kept[what] = (current, read())
        value: T = known[1]
        return value

    def write(self, work: Callable[[apsw.Connection], T]) -> T:
        """Run `work` in the next group commit; return its result once its changes are on disk. Writes of the same commit fail separately.

        Raises:
            Overloaded: too many writes are waiting.
            StoreError: the commit failed; nothing of `work` is stored.
        """
        return self._written(work, alone=False)

    def write_apart(self, work: Callable[[apsw.Connection], T]) -> T:
        """Like `write`, in a commit that no other write shares: for work that changes much, which has no savepoint then."""

        def committed(connection: apsw.Connection) -> T:
            with immediate(connection):
                return work(connection)

        return self.write_alone(committed)

    def write_alone(self, work: Callable[[apsw.Connection], T]) -> T:
        """Run `work` between two commits, outside of any transaction, and return its result: for VACUUM and checkpoints.

        Raises:
            Overloaded: too many writes are waiting, or a reader blocks the work.
            StoreError: the work failed.
        """
        return self._written(work, alone=True)

    def _written(self, work: Callable[[apsw.Connection], T], *, alone: bool) -> T:
        if self.unwritable:
            raise self.unwritable
        with self._remember_damage():
            result: Future[T] = Future()
            self._enqueue(_Write(work, result, alone))
            return result.result()

    def size_bytes(self) -> int:
        """The size of the file and its write-ahead log on disk."""
        files = (self.path, self.path.with_name(f"{self.path.name}-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    def close(self) -> None:
        """Finish waiting writes, then close every connection. Closing the last one checkpoints the write-ahead log."""
        with self._gate:
            self._closed = True
        if self._writer:
            self._writes.put(None)
            self._writer.join()
        self._readers.close()
        self._write_connection.close()

    def _open_for_writing(self) -> apsw.Connection:
        connection = self._connect(apsw.SQLITE_OPEN_CREATE)
        try:
            on_network = self._location == str(self.path) and network_drives.is_on_network_drive(self.path)
            # Network drives lack the memory that write-ahead logging shares between connections.
            connection.pragma("journal_mode", "TRUNCATE" if on_network else "WAL")
        except BaseException:
            connection.close()
            raise
        if connection.readonly("main"):
            connection.close()
            raise apsw.ReadOnlyError("they may only be read")
        return connection

    def _open_for_reading(self, error: apsw.Error) -> apsw.Connection:
        """For a full or read-only disk: SQLite creates files even for reading, unless the URI forbids it."""
        if not self.path.is_file() or not self.path.stat().st_size:
            raise error
        log = self.path.with_name(f"{self.path.name}-wal")
        # A log left by a crash holds acknowledged writes, which `immutable` would ignore.
        options = "mode=ro&readonly_shm=1" if log.exists() and log.stat().st_size else "immutable=1"
        self._location, self._flags = f"{self.path.absolute().as_uri()}?{options}", apsw.SQLITE_OPEN_READONLY
        try:
            connection = self._connect()
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
        except apsw.Error:
            raise error from None
        translated = translate(error, self.path)
        if not isinstance(translated, StoreError):
            raise error
        self.unwritable = translated
        return connection

    @contextmanager
    def _remember_damage(self) -> Iterator[None]:
        if self._damage:
            raise self._damage
        try:
            yield
        except apsw.Error as error:
            translated = translate(error, self.path)
            if translated is None:
                raise
            if isinstance(translated, StoreDamaged):
                self._damage = translated
            raise translated from error
        except StoreDamaged as error:
            if isinstance(error.__cause__, apsw.Error):
                self._damage = error
            raise

    def _connect(self, further_flags: int = 0) -> apsw.Connection:
        flags = self._flags | apsw.SQLITE_OPEN_URI | further_flags
        connection = apsw.Connection(self._location, flags=flags)
        try:
            cipher.unlock(connection, self.key.database if self.key else None)
            connection.set_busy_timeout(BUSY_TIMEOUT_MS)
            # Otherwise the planner looks at bound values, such as that of a LIMIT, and prepares such a statement anew in every execution.
            connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
            connection.execute("PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON; PRAGMA temp_store=MEMORY; PRAGMA cache_size=-2000")
            # Deleted content is overwritten with zeros, so that nothing erased stays in a free page. Not every build of SQLite
            # does so by default.
            connection.execute("PRAGMA secure_delete=ON")
        except BaseException:
            connection.close()
            raise
        return connection

    def _enqueue(self, write: _Write) -> None:
        with self._gate:  # a write queued after `close` ended the writer would wait forever
            if self._closed:
                raise StoreError("this persona's store is closed", "the server is stopping", "Try again in a moment")
            if self._writer is None:
                self._writer = threading.Thread(target=self._write_loop, name=f"writer {self.path.parent.name}", daemon=True)
                self._writer.start()
            try:
                self._writes.put_nowait(write)
            except queue.Full:
                raise Overloaded(
                    "too many writes are waiting for this persona",
                    "{} at once are the limit",
                    "Try again in a second",
                    WAITING_WRITES_LIMIT,
                ) from None

    def _write_loop(self) -> None:
        following: _Write | None = None
        while True:
            first = following or self._writes.get()
            following = None
            if first is None:
                return
            if first.alone:
                self._run_alone(first)
                continue
            group = [first]
            stop = False
            while len(group) < GROUP_COMMIT_LIMIT and not stop and following is None:
                try:
                    more = self._writes.get_nowait()
                except queue.Empty:
                    break
                stop = more is None
                if more and more.alone:
                    following = more
                elif more:
                    group.append(more)
            self._commit(group)
            if stop:
                return

    def _run_alone(self, write: _Write) -> None:
        try:
            value = write.context.run(write.work, self._write_connection)
            self._commits += 1
            write.result.set_result(value)
        except BaseException as error:  # noqa: BLE001  the caller gets the error, and the writer thread must survive
            write.result.set_exception(error)

    def _commit(self, group: list[_Write]) -> None:
        """The group commit: one transaction with a savepoint per write. No write reports success before the commit."""
        outcomes: list[tuple[_Write, Any, BaseException | None]] = []
        try:
            with immediate(self._write_connection):
                # A savepoint makes each statement take longer the more was changed since: SQLite walks through its journal in memory.
                run = self._attempt if len(group) > 1 else self._whole
                outcomes = [(write, *write.context.run(run, write.work)) for write in group]
        except BaseException as error:  # noqa: BLE001  the commit itself failed: every write of the group fails
            outcomes = [(write, None, error) for write in group]
        self._commits += 1  # before anybody learns that it was written
        for write, value, failure in outcomes:
            write.result.set_result(value) if failure is None else write.result.set_exception(failure)

    def _whole(self, work: Work) -> tuple[Any, BaseException | None]:
        return work(self._write_connection), None

    def _attempt(self, work: Work) -> tuple[Any, BaseException | None]:
        connection = self._write_connection
        connection.execute("SAVEPOINT attempt")
        try:
            value = work(connection)
            connection.execute("RELEASE attempt")
        except Exception as error:  # a failed write doesn't affect the others of the group
            if not connection.in_transaction:
                raise  # SQLite ended the whole transaction (disk full, I/O error): the group fails together
            connection.execute("ROLLBACK TO attempt; RELEASE attempt")
            return None, error
        return value, None


def file_id(path: Path) -> tuple[int, int] | None:
    """Device and inode of the file at a path; None if there is none."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_dev, stat.st_ino


@contextmanager
def immediate(connection: apsw.Connection) -> Iterator[None]:
    """A write transaction that takes its lock at the start, so that it can't fail halfway for lack of one."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def disable_memory_statistics() -> None:
    """Turn off SQLite's count of allocated memory: its global lock caused a third of all lock waits with fifty callers.

    Has no effect after the first connection is opened.
    """
    if apsw.connections():
        logger.warning("SQLite keeps counting its allocations: a file is open already")
        return
    apsw.shutdown()
    apsw.config(apsw.SQLITE_CONFIG_MEMSTATUS, False)
    apsw.initialize()
