"""Another directory in a persona's place: made whole beside it, and put there by two renames that a crash can't leave half done.

    .staging/<directory>.new    being made; a crash leaves it, and the next start removes it
    .staging/<directory>.old    what was there, until the other one has its place
    .staging/<…>.scratch        copies that are needed for a moment

No persona may be open meanwhile: its files are others afterwards. Whoever calls holds the data directory's lock.
"""

import logging
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memory_mcp.errors import StoreError
from memory_mcp.store.files.durable_files import shred, sync_directory, sync_file

STAGING_NAME = ".staging"
NEW, OLD, SCRATCH = ".new", ".old", ".scratch"
PRIVATE = 0o700

logger = logging.getLogger(__name__)


@contextmanager
def replacement(data_directory: Path, folder: str) -> Iterator[Path]:
    """An empty directory that becomes `data_directory`/`folder` when the block ends well, instead of what is there, if anything is.

    Everything in it is on the disk before it takes its place. What was there is overwritten with zeros and removed.

    Raises:
        StoreError: what is there is a link to another place, which renames can't exchange.
    """
    if (data_directory / folder).is_symlink():
        raise StoreError(f"{folder} is a link to another place", "another directory can't be put there", "Move it into the data directory")
    fresh = staging(data_directory) / f"{folder}{NEW}"
    _remove(fresh)
    fresh.mkdir(mode=PRIVATE)
    try:
        yield fresh
        _sync(fresh)
    except BaseException:
        _remove(fresh)
        raise
    _put_in_place(data_directory, folder)


def staging(data_directory: Path) -> Path:
    """Where something is made before it has its place: on the same disk, and as private as the rest."""
    directory = data_directory / STAGING_NAME
    directory.mkdir(mode=PRIVATE, exist_ok=True)
    return directory


@contextmanager
def scratch(data_directory: Path, name: str) -> Iterator[Path]:
    """An empty directory for copies that are needed for a moment. `name`: nobody else uses it meanwhile."""
    directory = staging(data_directory) / f"{name}{SCRATCH}"
    _remove(directory)
    directory.mkdir(mode=PRIVATE)
    try:
        yield directory
    finally:
        _remove(directory)


def settle(data_directory: Path) -> None:
    """Ends what a crash interrupted: what was whole gets its place, what was not is removed."""
    try:
        _settle(data_directory, data_directory / STAGING_NAME)
    except OSError as error:  # on a disk that refuses writing what is there must be served all the same
        logger.error("what an interrupted operation left in %s can't be tidied up: %s", STAGING_NAME, error)


def _settle(data_directory: Path, directory: Path) -> None:
    for old in directory.glob(f"*{OLD}"):
        folder = old.name.removesuffix(OLD)
        if not (data_directory / folder).exists():
            # The crash was between the two renames: `.new` is whole. Without it, nothing has taken the place of the old one.
            fresh = directory / f"{folder}{NEW}"
            (fresh if fresh.exists() else old).rename(data_directory / folder)
            sync_directory(data_directory)
        logger.warning("%s: an operation that was interrupted is ended", folder)
        if old.exists():
            _remove(old)
    for scrap in [*directory.glob(f"*{NEW}"), *directory.glob(f"*{SCRATCH}")]:
        _remove(scrap)


def _put_in_place(data_directory: Path, folder: str) -> None:
    directory, place = data_directory / STAGING_NAME, data_directory / folder
    old = directory / f"{folder}{OLD}"
    if place.exists():
        place.rename(old)
        sync_directory(directory)
    (directory / f"{folder}{NEW}").rename(place)
    sync_directory(data_directory)
    if old.exists():
        _remove(old)


def _sync(directory: Path) -> None:
    for entry in directory.rglob("*"):
        if entry.is_dir():
            sync_directory(entry)
        else:
            sync_file(entry)
    sync_directory(directory)


def _remove(directory: Path) -> None:
    for file in [entry for entry in directory.rglob("*") if entry.is_file() and not entry.is_symlink()]:
        shred(file)
    shutil.rmtree(directory, ignore_errors=True)
