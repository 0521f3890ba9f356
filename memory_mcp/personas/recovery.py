"""What is done to a whole persona, so that a crash leaves it done or not done: `.unfinished/` in the data directory.

A directory in it is either on its way in (`copy-…`) or on its way out (`erase-…`): both go at the next start. A note in it says
that a directory is getting another name: whether it has it already can be seen, and what belongs to the name is finished.
"""

import json
import logging
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from memory_mcp.personas.directories import write_identity
from memory_mcp.store.files import encryption_keys
from memory_mcp.store.files.durable_files import sync_directory, write_atomically

PLACE_NAME = ".unfinished"
COMING, GOING, RENAMING = "copy-", "erase-", "rename-"
PRIVATE = 0o700

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Renaming:
    """A directory that gets another name, and the persona's name that belongs to each."""

    source: str
    target: str
    source_name: str
    target_name: str


def place(data_directory: Path, prefix: str) -> Path:
    """A name in `.unfinished/` that nothing has."""
    unfinished = data_directory / PLACE_NAME
    if not unfinished.exists():
        unfinished.mkdir(mode=PRIVATE)
        sync_directory(data_directory)
    return unfinished / f"{prefix}{secrets.token_hex(8)}"


def move(source: Path, target: Path) -> None:
    """One rename that survives a power cut."""
    source.rename(target)
    sync_directory(target.parent)
    if source.parent != target.parent:
        sync_directory(source.parent)


def destroy(directory: Path) -> None:
    """Removes a directory and every file in it, the key of an encrypted persona first: without it the rest is noise. Bytes on the disk are
    not overwritten, but for the key's."""
    encryption_keys.destroy(directory)
    shutil.rmtree(directory)
    sync_directory(directory.parent)


@contextmanager
def noted(data_directory: Path, renaming: Renaming) -> Iterator[None]:
    """Notes a renaming before the block begins, and takes the note away when it has ended well."""
    note = place(data_directory, RENAMING)
    write_atomically(note, json.dumps(asdict(renaming), ensure_ascii=False) + "\n")
    yield
    note.unlink()
    sync_directory(note.parent)


def finish_unfinished(data_directory: Path) -> None:
    """Brings to its end, or undoes, what a crash has interrupted. Call it before a persona is opened."""
    unfinished = data_directory / PLACE_NAME
    if not unfinished.is_dir():
        return
    for entry in sorted(unfinished.iterdir()):
        try:
            _finish(data_directory, entry)
        except (OSError, ValueError, TypeError) as error:  # the personas that it is not about must be served
            logger.error("%s in %s can't be finished: %s", entry.name, PLACE_NAME, error)


def _finish(data_directory: Path, entry: Path) -> None:
    if entry.is_dir():
        destroy(entry)
        logger.warning("what an interrupted %s left is removed", "copy" if entry.name.startswith(COMING) else "erasing")
        return
    if entry.name.startswith(RENAMING):
        told = Renaming(**json.loads(entry.read_text(encoding="utf-8")))
        if (data_directory / told.target).is_dir() and not (data_directory / told.source).exists():
            write_identity(data_directory / told.target, told.target_name)
            logger.warning("%s was being renamed to %s: it is now", told.source_name, told.target_name)
    entry.unlink()
