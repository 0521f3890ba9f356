"""Recovers operations on whole personas after a crash, by entries in `.unfinished/` in the data directory.

A directory in it is an incomplete copy (`copy-…`) or a persona being erased (`erase-…`): the next start removes both. A file
(`rename-…`) describes a rename: if the directory has its new name already, the next start finishes the rename.
"""

import json
import logging
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from memory_mcp.personas.directories import IDENTITY_NAME, is_readable, write_identity
from memory_mcp.store.files import encryption_keys
from memory_mcp.store.files.durable_files import PRIVATE_DIRECTORY, sync_directory, write_atomically
from memory_mcp.store.files.persona_context import FILE_NAME as CONTEXT_NAME
from memory_mcp.store.sqlite.database import DATABASE_NAME
from memory_mcp.store.vectors.index_files import DIRECTORY_NAME as VECTORS_NAME

UNFINISHED_NAME = ".unfinished"
IMPORTS_NAME = ".imports"  # files that a server is importing
COPY_PREFIX, ERASE_PREFIX, RENAME_PREFIX = "copy-", "erase-", "rename-"

# The names of a persona's files, and with a dot those of their temporary copies.
_OWN_NAMES = (DATABASE_NAME, CONTEXT_NAME, VECTORS_NAME, IDENTITY_NAME, encryption_keys.KEY_NAME)
_OWN = (*_OWN_NAMES, *(f".{name}." for name in _OWN_NAMES))

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Renaming:
    """A rename of a persona: the old and new directory names, and the persona's names."""

    source: str
    target: str
    source_name: str
    target_name: str


def unfinished_path(data_directory: Path, prefix: str) -> Path:
    """A new path in `.unfinished/`."""
    unfinished = data_directory / UNFINISHED_NAME
    if not unfinished.exists():
        unfinished.mkdir(mode=PRIVATE_DIRECTORY)
        sync_directory(data_directory)
    return unfinished / f"{prefix}{secrets.token_hex(8)}"


def move(source: Path, target: Path) -> None:
    """Rename durably."""
    source.rename(target)
    sync_directory(target.parent)
    if source.parent != target.parent:
        sync_directory(source.parent)


def destroy(directory: Path) -> None:
    """Remove a directory and its files, the key of an encrypted persona first, which makes the rest unreadable. Only the key is
    overwritten. Where the directory or a file in it is a link to another disk, the persona's files there are removed, and nothing else."""
    encryption_keys.destroy(directory)
    for entry in directory.iterdir():
        if entry.name.startswith(_OWN) and (entry.is_symlink() or directory.is_symlink()):
            _remove(entry.resolve())
            if entry.is_symlink():
                entry.unlink()
    if directory.is_symlink():
        _remove_link(directory)
    else:
        shutil.rmtree(directory)
    sync_directory(directory.parent)


def _remove_link(directory: Path) -> None:
    real = directory.resolve()
    with suppress(OSError):  # there is something else in it
        real.rmdir()
        sync_directory(real.parent)
    directory.unlink()


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        for file in (path, *(path.with_name(f"{path.name}{ending}") for ending in ("-wal", "-shm", "-journal"))):
            file.unlink(missing_ok=True)


def make_absolute(directory: Path) -> None:
    """Let a directory that is a relative link lead to the same place from anywhere."""
    if directory.is_symlink() and not directory.readlink().is_absolute():
        absolute = directory.with_name(f".{directory.name}.link")
        absolute.unlink(missing_ok=True)
        absolute.symlink_to(directory.resolve(), target_is_directory=True)
        absolute.replace(directory)
        sync_directory(directory.parent)


@contextmanager
def recorded(data_directory: Path, renaming: Renaming) -> Iterator[None]:
    """Record a rename during the block; the record is removed when the block ends without an error."""
    record = unfinished_path(data_directory, RENAME_PREFIX)
    write_atomically(record, json.dumps(asdict(renaming), ensure_ascii=False) + "\n")
    yield
    record.unlink()
    sync_directory(record.parent)


def finish_unfinished(data_directory: Path) -> None:
    """Finish or undo interrupted operations. Call it before a persona is opened."""
    shutil.rmtree(data_directory / IMPORTS_NAME, ignore_errors=True)  # of a server that was killed, and not encrypted
    unfinished = data_directory / UNFINISHED_NAME
    if not unfinished.is_dir():
        return
    if not is_readable(unfinished):
        logger.error("%s can't be read: what was interrupted is not finished. Give it to the server's user (chown -R)", UNFINISHED_NAME)
        return
    for entry in sorted(unfinished.iterdir()):
        try:
            _finish(data_directory, entry)
        except (OSError, ValueError, TypeError) as error:  # the other personas must be served
            logger.error("%s in %s can't be finished: %s", entry.name, UNFINISHED_NAME, error)


def _finish(data_directory: Path, entry: Path) -> None:
    if entry.is_dir():
        destroy(entry)
        logger.warning("the remains of an interrupted %s were removed", "copy" if entry.name.startswith(COPY_PREFIX) else "erasing")
        return
    if entry.name.startswith(RENAME_PREFIX):
        renaming = Renaming(**json.loads(entry.read_text(encoding="utf-8")))
        if (data_directory / renaming.target).is_dir() and not (data_directory / renaming.source).exists():
            write_identity(data_directory / renaming.target, renaming.target_name)
            logger.warning("the interrupted rename of %s to %s was finished", renaming.source_name, renaming.target_name)
    entry.unlink()
