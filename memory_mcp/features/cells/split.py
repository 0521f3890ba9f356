"""Splits a cell in two while no server runs: half of its personas move to an empty directory, on the same disk or another.

    source {"split": "copying"} → target {"split"} → copies → all compared → source {"split": "removing"} → target → removal → source

`.cell.json` in both is the journal. Until it holds `removing`, the source has everything and the target counts for nothing; after that, the
target does. Neither is opened in between, and running the command again goes on, wherever it was killed.
"""

import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from memory_mcp.errors import InvalidInput, StoreDamaged
from memory_mcp.personas import atomic_replace, cells, lifecycle
from memory_mcp.personas.cells import Cell
from memory_mcp.personas.registry import Personas
from memory_mcp.store.files import access_tokens, signing_keys
from memory_mcp.store.files.durable_files import PRIVATE_DIRECTORY, refusal, sync_directory, write_atomically
from memory_mcp.store.legacy.original_files import digest
from memory_mcp.upkeep.backup import DIRECTORY_NAME as BACKUPS_NAME
from memory_mcp.upkeep.older_data import older_items

BLOCK_BYTES = 1024 * 1024

# Both cells get these files: tokens name their personas, and those who have a persona's packs know the key of their signer.
_PACKS = Path(signing_keys.DIRECTORY_NAME)
_SHARED = (Path(access_tokens.FILE_NAME), _PACKS / signing_keys.KEY_NAME, _PACKS / signing_keys.SIGNERS_NAME)

Moved = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Split:
    """The two cells, and how many personas each has."""

    kept: Cell
    new: Cell
    kept_personas: int
    moved_personas: int


def split(source_directory: Path, target_directory: Path, progress: Moved = lambda _done, _all: None) -> Split:
    """Make cell `i` of `n` the cells `i` and `i + n` of `2n`. The second one's directory is empty, or that of an interrupted split.

    Raises:
        StartupError: a server uses one of the directories.
        InvalidInput: the second directory holds something else, or older data wait in the first one.
        StoreError: files can't be read or written, or differ from their copies. The source still has everything.
    """
    if source_directory.resolve() == target_directory.resolve():
        raise InvalidInput("a cell is split into two directories", "both are the same", "Name another one with --to")
    with _opened(source_directory) as source, _opened(target_directory) as target:
        stored, there = cells.read(source_directory), cells.read(target_directory)
        if "split_id" in stored and stored["split_id"] == there.get("split_id"):  # by an earlier run
            return Split(source.cell, target.cell, len(source.names()), len(target.names()))
        journal = stored.get("split") or {"id": secrets.token_hex(8), "phase": "copying"}
        old = Cell(source.cell.index, source.cell.of)
        kept, new = Cell(old.index, 2 * old.of), Cell(old.index + old.of, 2 * old.of)
        _check(source, target, journal["id"], new)
        names = source.names()
        moving = [name for name in names if new.owns(name)]
        try:
            if journal["phase"] == "copying":
                cells.write(source_directory, old, split=journal)
                cells.write(target_directory, new, split={"id": journal["id"]})
                _copy(source, target, moving, progress)
                cells.write(source_directory, old, split={**journal, "phase": "removing"})
            cells.write(target_directory, new, split_id=journal["id"])
            for name in moving:
                shutil.rmtree(_backups(source, name), ignore_errors=True)
                lifecycle.remove_files(source, name)
            cells.write(source_directory, kept, split_id=journal["id"])
        except OSError as error:
            raise refusal(error, f"{source_directory} can't be split", "Make both directories writable, and run it again") from error
        return Split(kept, new, len(names) - len(moving), len(target.names()))


@contextmanager
def _opened(directory: Path) -> Iterator[Personas]:
    personas = Personas(directory, open_limit=0, during_split=True)
    try:
        yield personas
    finally:
        personas.close()


def _check(source: Personas, target: Personas, identity: str, new: Cell) -> None:
    """Raises InvalidInput where the split would mix up what does not belong together."""
    if waiting := [item for item in older_items(source.directory) if not item.refused]:
        raise InvalidInput(
            "{} holds data of an older server", "{}", "Run `memory-mcp adopt` first, then split it", source.directory, waiting[0].source
        )
    if source.names() != source.stores():
        raise InvalidInput(
            "{} holds pools", "the personas of other cells could not read them", "Export and erase them first", source.directory
        )
    stored = cells.read(target.directory)
    is_ours = identity in (stored.get("split", {}).get("id"), stored.get("split_id"))
    is_empty = stored == cells.ONLY and not target.names()
    if not (is_ours or is_empty) or (is_ours and (stored["index"], stored["of"]) != (new.index, new.of)):
        raise InvalidInput("{} is not empty", "it is not of this split", "Name an empty directory with --to", target.directory)


def _copy(source: Personas, target: Personas, moving: list[str], progress: Moved) -> None:
    """Copy what is not there yet, then compare everything."""
    for number, name in enumerate(moving):
        progress(number, 2 * len(moving))
        folder = target.path_of(name).parent
        if not folder.exists():
            with atomic_replace.replacement(target.directory, folder.name) as new_directory:
                shutil.copytree(source.path_of(name).parent, new_directory, dirs_exist_ok=True)
        if (backups := _backups(source, name)).is_dir():
            _backups(target, name).parent.mkdir(mode=PRIVATE_DIRECTORY, exist_ok=True)
            atomic_replace.sync_tree(Path(shutil.copytree(backups, _backups(target, name), dirs_exist_ok=True)))
    for file in _SHARED:
        if (source.directory / file).exists():
            (target.directory / file).parent.mkdir(mode=PRIVATE_DIRECTORY, exist_ok=True)
            write_atomically(target.directory / file, (source.directory / file).read_bytes())
    for number, name in enumerate(moving, start=len(moving)):
        progress(number, 2 * len(moving))
        _compare(name, source.path_of(name).parent, target.path_of(name).parent)
        _compare(name, _backups(source, name), _backups(target, name))
    sync_directory(target.directory)


def _compare(name: str, original: Path, copy: Path) -> None:
    """Raises StoreDamaged, and removes the copy, unless both hold the same files."""
    if _digests(original) != _digests(copy):
        shutil.rmtree(copy, ignore_errors=True)
        raise StoreDamaged("a copy of {} differs from the original", "{}", "Check the disk, and run it again", repr(name), copy)


def _digests(directory: Path) -> dict[str, str]:
    """The SHA-256 of each file, by its path."""
    return {path.relative_to(directory).as_posix(): digest(path) for path in sorted(directory.rglob("*")) if path.is_file()}


def _backups(personas: Personas, name: str) -> Path:
    return personas.directory / BACKUPS_NAME / personas.path_of(name).parent.name
