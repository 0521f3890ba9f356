"""The locks that prevent two servers on one data directory, and the file that identifies their owner."""

import json
import logging
import os
import sys
from pathlib import Path

from filelock import FileLock, Timeout

if sys.platform != "win32":
    import fcntl

from memory_mcp.errors import StartupError
from memory_mcp.store.files.durable_files import PRIVATE_DIRECTORY, write_atomically

LOCK_NAME = ".server.lock"
LOCK_OWNER_NAME = ".server.json"

logger = logging.getLogger(__name__)


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
        StartupError: the directory can't be created or written, or another server uses it.
    """
    try:
        if not directory.exists():
            directory.mkdir(mode=PRIVATE_DIRECTORY, parents=True)
            logger.warning("the data directory %s did not exist: it was created, without a persona", directory)
        lock = ServerLock(directory)
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
    except OSError as error:  # only used in the error message of a second server; a full disk must not prevent the start
        logger.warning("%s can't be written: %s", LOCK_OWNER_NAME, error.strerror)
    return lock


def _owner(directory: Path) -> str:
    try:
        return f"it is process {json.loads((directory / LOCK_OWNER_NAME).read_text(encoding='utf-8'))['process']}"
    except (OSError, ValueError, KeyError, TypeError):
        return ""
