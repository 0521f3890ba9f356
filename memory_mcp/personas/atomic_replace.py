"""Replaces a persona's directory atomically: the new one is completed in `.staging`, then two renames exchange them.

    .staging/<directory>.new    the new directory; after a crash, the next start removes it
    .staging/<directory>.old    the old directory, until the new one is in place
    .staging/<…>.scratch        temporary copies

The persona must not be open meanwhile. The caller holds the lock of the data directory.
"""

import logging
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memory_mcp.errors import StoreError
from memory_mcp.store.files.durable_files import PRIVATE_DIRECTORY, shred, sync_directory, sync_file

STAGING_NAME = ".staging"
NEW, OLD, SCRATCH = ".new", ".old", ".scratch"

logger = logging.getLogger(__name__)


@contextmanager
def replacement(data_directory: Path, folder: str) -> Iterator[Path]:
    """An empty directory that replaces `data_directory`/`folder` when the block ends without an error.

    Its content is synced to disk first. The old directory is overwritten with zeros and removed.

    Raises:
        StoreError: the old directory is a symbolic link, which renames can't exchange.
    """
    if (data_directory / folder).is_symlink():
        raise StoreError("{} is a symbolic link", "it can't be replaced", "Move it into the data directory", folder)
    new_directory = staging(data_directory) / f"{folder}{NEW}"
    remove(new_directory)
    new_directory.mkdir(mode=PRIVATE_DIRECTORY)
    try:
        yield new_directory
        sync_tree(new_directory)
    except BaseException:
        remove(new_directory)
        raise
    _exchange(data_directory, folder)


def staging(data_directory: Path) -> Path:
    """The directory for unfinished work, on the same disk as the personas."""
    directory = data_directory / STAGING_NAME
    directory.mkdir(mode=PRIVATE_DIRECTORY, exist_ok=True)
    return directory


@contextmanager
def scratch(data_directory: Path, name: str) -> Iterator[Path]:
    """An empty directory for temporary copies, removed when the block ends. `name` must not be in use."""
    directory = staging(data_directory) / f"{name}{SCRATCH}"
    remove(directory)
    directory.mkdir(mode=PRIVATE_DIRECTORY)
    try:
        yield directory
    finally:
        remove(directory)


def finish_interrupted(data_directory: Path) -> None:
    """Finish replacements that a crash interrupted: complete directories are put in place, incomplete ones removed."""
    try:
        _finish(data_directory, data_directory / STAGING_NAME)
    except OSError as error:  # personas must be served even from a read-only disk
        logger.error("the remains of an interrupted operation in %s can't be removed: %s", STAGING_NAME, error)


def _finish(data_directory: Path, directory: Path) -> None:
    for old in directory.glob(f"*{OLD}"):
        folder = old.name.removesuffix(OLD)
        if not (data_directory / folder).exists():
            # The crash was between the two renames, so `.new` is complete. If it is missing, the old directory goes back.
            new_directory = directory / f"{folder}{NEW}"
            (new_directory if new_directory.exists() else old).rename(data_directory / folder)
            sync_directory(data_directory)
        logger.warning("%s: an interrupted operation was finished", folder)
        if old.exists():
            remove(old)
    for leftover in [*directory.glob(f"*{NEW}"), *directory.glob(f"*{SCRATCH}")]:
        remove(leftover)


def _exchange(data_directory: Path, folder: str) -> None:
    directory, target = data_directory / STAGING_NAME, data_directory / folder
    old = directory / f"{folder}{OLD}"
    if target.exists():
        target.rename(old)
        sync_directory(directory)
    (directory / f"{folder}{NEW}").rename(target)
    sync_directory(data_directory)
    if old.exists():
        remove(old)


def sync_tree(directory: Path) -> None:
    """Make a directory with everything in it survive a power failure."""
    for entry in directory.rglob("*"):
        if entry.is_dir():
            sync_directory(entry)
        else:
            sync_file(entry)
    sync_directory(directory)


def remove(directory: Path) -> None:
    """Remove a directory, its files overwritten with zeros."""
    for file in [entry for entry in directory.rglob("*") if entry.is_file() and not entry.is_symlink()]:
        shred(file)
    shutil.rmtree(directory, ignore_errors=True)
