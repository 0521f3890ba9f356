"""The lock that keeps a second server away from a data directory, and the note of who has it."""

import json
import logging
import os
from pathlib import Path

from filelock import FileLock, Timeout

from memory_mcp.errors import StartupError
from memory_mcp.store.files.durable_files import write_atomically

PRIVATE = 0o700  # memories are nobody else's business on this machine
LOCK_NAME = ".server.lock"
LOCK_OWNER_NAME = ".server.json"

logger = logging.getLogger(__name__)


def locked(directory: Path) -> FileLock:
    """Creates the directory if need be and takes its lock.

    Raises:
        StartupError: it can't be created or written, or another server has it.
    """
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
