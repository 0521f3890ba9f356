"""The lock that prevents two servers on one data directory, and the file that identifies its owner."""

import json
import logging
import os
from pathlib import Path

from filelock import FileLock, Timeout

from memory_mcp.errors import StartupError
from memory_mcp.store.files.durable_files import PRIVATE_DIRECTORY, write_atomically

LOCK_NAME = ".server.lock"
LOCK_OWNER_NAME = ".server.json"

logger = logging.getLogger(__name__)


def locked(directory: Path) -> FileLock:
    """Create the directory if necessary and take its lock.

    Raises:
        StartupError: the directory can't be created or written, or another server uses it.
    """
    try:
        if not directory.exists():
            directory.mkdir(mode=PRIVATE_DIRECTORY, parents=True)
            logger.warning("the data directory %s did not exist: it was created, without a persona", directory)
        lock = FileLock(directory / LOCK_NAME, thread_local=False)  # any thread may stop the server and release it
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
    except OSError as error:  # only used in the error message of a second server; a full disk must not prevent the start
        logger.warning("%s can't be written: %s", LOCK_OWNER_NAME, error.strerror)
    return lock


def _owner(directory: Path) -> str:
    try:
        return f"it is process {json.loads((directory / LOCK_OWNER_NAME).read_text(encoding='utf-8'))['process']}"
    except (OSError, ValueError, KeyError, TypeError):
        return ""
