"""The locks that prevent two servers on one data directory, and the note with the address of their owner."""

import hashlib
import json
import logging
import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from filelock import FileLock, Timeout

if sys.platform != "win32":
    import fcntl

from memory_mcp.errors import DirectoryInUse, StartupError
from memory_mcp.store.files.durable_files import PRIVATE_DIRECTORY, write_atomically
from memory_mcp.wording import sentence

LOCK_NAME = ".server.lock"
LOCK_OWNER_NAME = ".server.json"
NOTE_HEADER = "X-Memory-MCP-Secret"  # with the secret of a note
YIELD_PATH = "/yield"  # POST asks a server that yields to stop

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ServerNote:
    """Who holds the lock of a data directory: a process, the URL at which it answers, and a secret that only readers of the note know.

    `yields`: it stops when a server that runs by itself asks for the directory.
    """

    process: int
    url: str
    secret: str
    yields: bool = False

    @property
    def instance(self) -> str:
        """The name that the server at `url` reports if it is the one of this note."""
        return instance_of(self.secret)


def instance_of(secret: str) -> str:
    """The public name of a server that has this secret."""
    return hashlib.sha256(secret.encode()).hexdigest()[:16]


def read_note(directory: Path) -> ServerNote | None:
    """The note of the server that holds the lock, or that held it and was killed; None while it starts, or if there is none."""
    try:
        note = json.loads((directory / LOCK_OWNER_NAME).read_text(encoding="utf-8"))
        return ServerNote(int(note["process"]), str(note["url"]), str(note["secret"]), note.get("yields") is True)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def announce(directory: Path, url: str, secret: str, *, yields: bool) -> None:
    """Note where the holder of the lock answers."""
    _write_note(directory, asdict(ServerNote(os.getpid(), url, secret, yields)))


def _write_note(directory: Path, note: dict[str, object]) -> None:
    path = directory / LOCK_OWNER_NAME
    try:
        path.unlink(missing_ok=True)  # on a full disk, that of a server that was killed must not remain
        write_atomically(path, json.dumps(note) + "\n")
    except OSError as error:  # the server works without it, and a full disk must not prevent the start
        logger.warning("%s can't be written: %s", LOCK_OWNER_NAME, error.strerror)


class ServerLock:
    """The lock of a data directory: on its lock file, and on the directory itself, because a lock file can be removed by hand."""

    def __init__(self, directory: Path) -> None:
        """Take the lock.

        Raises:
            Timeout: another server has it.
            OSError: the directory can't be used.
        """
        self._file = FileLock(directory / LOCK_NAME, thread_local=False)  # any thread may stop the server and release it
        self._directory: int | None = None
        self._file.acquire(timeout=0)
        try:
            self._lock_directory(directory)
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Release the lock, if it is held."""
        if self._directory is not None:
            os.close(self._directory)
            self._directory = None
        self._file.release()

    def _lock_directory(self, directory: Path) -> None:
        if sys.platform == "win32":  # where a file that is open can't be removed
            return
        self._directory = os.open(directory, os.O_RDONLY)
        try:
            fcntl.flock(self._directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Timeout(str(directory)) from None
        except OSError as error:  # some network drives lock no directories
            logger.debug("%s itself can't be locked: %s", directory, error.strerror)


def locked(directory: Path) -> ServerLock:
    """Create the directory if necessary and take its lock.

    Raises:
        DirectoryInUse: another server uses it.
        StartupError: the directory can't be created or written.
    """
    try:
        _create(directory)
        lock = ServerLock(directory)
    except Timeout:
        raise DirectoryInUse(
            "another server uses the data directory {}",
            "{}",
            "Stop that one, or choose another directory with --data",
            directory,
            _owner(directory),
        ) from None
    except OSError as error:
        file = f" ({Path(error.filename).name})" if error.filename else ""
        why = (error.strerror or str(error)) + file
        raise StartupError(
            "the data directory {} can't be used", "{}", "Make it exist and be writable, or choose another with --data", directory, why
        ) from error
    _write_note(directory, {"process": os.getpid()})
    return lock


def _create(directory: Path) -> None:
    """Another process that starts at the same moment may create it first."""
    try:
        directory.mkdir(mode=PRIVATE_DIRECTORY, parents=True)
    except FileExistsError:
        if not directory.is_dir():
            raise
    else:
        logger.warning("the data directory %s did not exist: it was created, without a persona", directory)


def _owner(directory: Path) -> str:
    try:
        return sentence("it is process {}", json.loads((directory / LOCK_OWNER_NAME).read_text(encoding="utf-8"))["process"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""
