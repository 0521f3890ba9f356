"""One persona's SQLite file: many readers, and one writer thread that commits for everybody who waits.

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
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import apsw

from memory_mcp.errors import Overloaded, StoreDamaged, StoreError
from memory_mcp.store.files.encryption_keys import PersonaKey
from memory_mcp.store.sqlite import cipher, network_drives
from memory_mcp.store.sqlite.errors import as_ours, translated_errors
from memory_mcp.store.sqlite.reader_pool import Readers

T = TypeVar("T")
Work = Callable[[apsw.Connection], Any]

BUSY_TIMEOUT_MS = 5_000
GROUP_COMMIT_LIMIT = 256
WAITING_WRITES_LIMIT = 2_000

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Write:
    work: Work
    result: "Future[Any]"
    alone: bool = False  # in no transaction of ours


class Database:
    """An open SQLite file. `read` gives a connection inside one snapshot, `write` runs a function in the next commit.

    `unwritable` says why nothing can be written to a file that could only be opened for reading, as on a full disk: open it
    again to find out whether that is over. After SQLite has found the file damaged everything is refused: what a
    damaged file still answers may be wrong.
    """

    def __init__(self, path: Path | None, key: PersonaKey | None = None) -> None:
        """Opens (and, where nothing is, creates) the file; prepares nothing in it. None: an empty database in memory. With a `key`
        the file is encrypted.

        Raises:
            StoreError: it can't be opened, or is no SQLite file.
        """
        self.unwritable: StoreError | None = None
        self.key = key
        self._damage: StoreDamaged | None = None
        self.path = path or Path("new persona", "memory")
        self._location = str(path) if path else f"file:/{uuid.uuid4().hex}?vfs=memdb"
        self._readers = Readers(self._connect)
        self._writes: queue.Queue[_Write | None] = queue.Queue(maxsize=WAITING_WRITES_LIMIT)
        self._gate = threading.Lock()
        self._writer: threading.Thread | None = None
        self._closed = False
        self._flags = apsw.SQLITE_OPEN_READWRITE
        with translated_errors(self.path):
            try:
                self._write_connection = self._opened_for_writing()
            except (apsw.FullError, apsw.IOError, apsw.CantOpenError, apsw.ReadOnlyError) as error:
                self._write_connection = self._opened_for_reading(error)
        self.file_id = file_id(path) if path else None

    @property
    def replaced(self) -> bool:
        """Whether another file, or none, is now where this one was opened: what is written to this one, nobody will find."""
        return self.file_id is not None and file_id(self.path) != self.file_id

    def prepare(self, work: Work) -> None:
        """Runs `work` on the writing connection before anybody else uses the file: for migrations."""
        with self._noting_damage():
            try:
                work(self._write_connection)
            except apsw.ReadOnlyError as error:
                raise self.unwritable or error from error

    @contextmanager
    def read(self) -> Iterator[apsw.Connection]:
        """A connection that sees one state of the file to the end of the block, whatever is written meanwhile."""
        # An APSW connection as a context manager is a savepoint: one snapshot.
        with self._noting_damage(), self._readers.taken() as connection, connection:
            yield connection

    @contextmanager
    def read_briefly(self) -> Iterator[apsw.Connection]:
        """The same for what takes milliseconds and many want at once: a few at a time. Not inside another one."""
        with self._readers.turns, self.read() as connection:
            yield connection

    def write(self, work: Callable[[apsw.Connection], T]) -> T:
        """What `work` returns, once its changes are on the disk. Other writers may share its commit, and not its failure.

        Raises:
            Overloaded: too many writes are waiting already.
            StoreError: the commit failed; nothing of `work` is stored.
        """
        if self.unwritable:
            raise self.unwritable
        with self._noting_damage():
            result: Future[T] = Future()
            self._enqueue(_Write(work, result))
            return result.result()

    def write_alone(self, work: Callable[[apsw.Connection], T]) -> T:
        """What `work` returns, run between two commits and in no transaction: for what SQLite refuses to do inside one.

        Raises:
            Overloaded: too many writes are waiting already, or a reader is in the way.
            StoreError: it could not be done.
        """
        if self.unwritable:
            raise self.unwritable
        with self._noting_damage():
            result: Future[T] = Future()
            self._enqueue(_Write(work, result, alone=True))
            return result.result()

    def size_bytes(self) -> int:
        """What the file and its write-ahead log take on the disk."""
        files = (self.path, self.path.with_name(f"{self.path.name}-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    def close(self) -> None:
        """Finishes the writes that wait, then closes every connection. The last one folds the write-ahead log back in."""
        with self._gate:
            self._closed = True
        if self._writer:
            self._writes.put(None)
            self._writer.join()
        self._readers.close()
        self._write_connection.close()

    def _opened_for_writing(self) -> apsw.Connection:
        connection = self._connect(apsw.SQLITE_OPEN_CREATE)
        try:
            on_network = self._location == str(self.path) and network_drives.holds(self.path)
            # Network drives lack the memory that write-ahead logging shares between connections.
            connection.pragma("journal_mode", "TRUNCATE" if on_network else "WAL")
        except BaseException:
            connection.close()
            raise
        if connection.readonly("main"):
            connection.close()
            raise apsw.ReadOnlyError("they may only be read")
        return connection

    def _opened_for_reading(self, error: apsw.Error) -> apsw.Connection:
        """For a disk that is full or refuses writing: SQLite makes files even to read, unless it is told how to do without."""
        if not self.path.is_file() or not self.path.stat().st_size:
            raise error
        log = self.path.with_name(f"{self.path.name}-wal")
        # A log that a crash left holds acknowledged writes: `immutable` would overlook them.
        how = "mode=ro&readonly_shm=1" if log.exists() and log.stat().st_size else "immutable=1"
        self._location, self._flags = f"{self.path.absolute().as_uri()}?{how}", apsw.SQLITE_OPEN_READONLY
        try:
            connection = self._connect()
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
        except apsw.Error:
            raise error from None
        ours = as_ours(error, self.path)
        if not isinstance(ours, StoreError):
            raise error
        self.unwritable = ours
        return connection

    @contextmanager
    def _noting_damage(self) -> Iterator[None]:
        if self._damage:
            raise self._damage
        try:
            with translated_errors(self.path):
                yield
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
            connection.execute("PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON; PRAGMA temp_store=MEMORY; PRAGMA cache_size=-2000")
            # What is deleted is overwritten with zeros: nothing that was erased may linger in a free page. This build of SQLite does
            # so anyway; another one might not.
            connection.execute("PRAGMA secure_delete=ON")
        except BaseException:
            connection.close()
            raise
        return connection

    def _enqueue(self, write: _Write) -> None:
        with self._gate:  # a write that passed the gate after `close` had ended the writer would wait for ever
            if self._closed:
                raise StoreError("this persona's store is closed", "the server is stopping", "Try again in a moment")
            if self._writer is None:
                self._writer = threading.Thread(target=self._write_loop, name=f"writer {self.path.parent.name}", daemon=True)
                self._writer.start()
            try:
                self._writes.put_nowait(write)
            except queue.Full:
                raise Overloaded(
                    "too many writes are waiting for this persona", f"{WAITING_WRITES_LIMIT} at once are the limit", "Try again in a second"
                ) from None

    def _write_loop(self) -> None:
        following: _Write | None = None
        while True:
            first = following or self._writes.get()
            following = None
            if first is None:
                return
            if first.alone:
                self._do_alone(first)
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

    def _do_alone(self, write: _Write) -> None:
        try:
            write.result.set_result(write.work(self._write_connection))
        except BaseException as error:  # noqa: BLE001  whoever asked must hear why, and the writer goes on: the next one waits for it
            write.result.set_exception(error)

    def _commit(self, group: list[_Write]) -> None:
        """One transaction for the whole group, a savepoint for each. Nobody hears of success before the commit."""
        outcomes: list[tuple[_Write, Any, BaseException | None]] = []
        try:
            with immediate(self._write_connection):
                outcomes = [(write, *self._attempt(write.work)) for write in group]
        except BaseException as error:  # noqa: BLE001  the commit itself failed: every writer of the group must hear why
            outcomes = [(write, None, error) for write in group]
        for write, value, failure in outcomes:
            if failure is None:
                write.result.set_result(value)
            else:
                write.result.set_exception(failure)

    def _attempt(self, work: Work) -> tuple[Any, BaseException | None]:
        connection = self._write_connection
        connection.execute("SAVEPOINT attempt")
        try:
            value = work(connection)
            connection.execute("RELEASE attempt")
        except Exception as error:  # one writer's failure is its own; the others of the group go on
            if not connection.in_transaction:
                raise  # SQLite ended the whole transaction (disk full, I/O error): the group fails together
            connection.execute("ROLLBACK TO attempt; RELEASE attempt")
            return None, error
        return value, None


def file_id(path: Path) -> tuple[int, int] | None:
    """Which file a path leads to now; None where there is none."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_dev, stat.st_ino


@contextmanager
def immediate(connection: apsw.Connection) -> Iterator[None]:
    """A write transaction that takes its lock at the start, so that it can't fail half way for want of one."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    try:
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def disable_memory_statistics() -> None:
    """Lets SQLite allocate without counting, for which all connections wait for one lock: with fifty callers a third of all waiting
    for locks. Only before the first connection is opened; later everything stays as it is.
    """
    if apsw.connections():
        logger.warning("SQLite goes on counting what it allocates: a file is open already")
        return
    apsw.shutdown()
    apsw.config(apsw.SQLITE_CONFIG_MEMSTATUS, False)
    apsw.initialize()
