"""Restores a persona from a backup, as a new persona or replacing one, while the server is stopped."""

import secrets
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from memory_mcp.config.master_key import KEY_BYTES
from memory_mcp.errors import InvalidInput
from memory_mcp.personas import atomic_replace
from memory_mcp.personas.directories import write_identity
from memory_mcp.personas.names import addressed_name, store_name
from memory_mcp.personas.registry import Personas, prepare
from memory_mcp.store import erasure, operations
from memory_mcp.store.files import backup_archive
from memory_mcp.store.files.backup_archive import FindKey
from memory_mcp.store.files.durable_files import PRIVATE_FILE, refusal, shred, write_atomically
from memory_mcp.store.files.persona_context import FILE_NAME as CONTEXT_NAME
from memory_mcp.store.files.sealed import seal
from memory_mcp.store.operations import Operation
from memory_mcp.store.sqlite import snapshots
from memory_mcp.store.sqlite.database import DATABASE_NAME, immediate
from memory_mcp.store.sqlite.snapshots import Contents, Progress
from memory_mcp.upkeep.backup import no_progress
from memory_mcp.upkeep.erasure_log import erased_since


@dataclass(frozen=True, slots=True)
class Restored:
    """The result. `contents`: of the restored database. `erased_again`: memories that were purged after the backup. `unknown_erased`: whether there may be others, because
    the sources are missing."""

    persona: str
    made_at: datetime
    contents: Contents
    encrypted: bool
    erased_again: int
    unknown_erased: bool


def restore(
    personas: Personas,
    backup: Path,
    find_key: FindKey,
    now: datetime,
    *,
    to: str | None = None,
    instead: bool = False,
    purged_since: Mapping[str, str] | None = None,
    progress: Progress = no_progress,
) -> Restored:
    """Restore a persona from a backup, under its name or as `to`. `instead`: replace an existing persona. `purged_since`: more that was purged
    after the backup, as `tombstones.read_all` has it.

    The existing persona stays until the backup is completely read, verified, and written; then renames exchange them.

    Raises:
        KeyRefused: the backup is sealed, and its key isn't configured.
        InvalidInput: the persona exists, and `instead` is false.
        StoreDamaged: the file isn't a backup, or was changed.
    """
    try:
        with backup_archive.opened(backup, find_key) as (manifest, extract):
            name = addressed_name(to) if to is not None else store_name(manifest.persona)
            directory = personas.path_of(name).parent
            if directory.exists() and not instead:
                raise InvalidInput(
                    "there is a persona {} already",
                    "",
                    "Say --replace to have the backup instead of it, or --as and another name",
                    repr(name),
                )
            purged, unknown = erased_since(personas, backup, manifest, name, find_key)
            encrypted = manifest.encrypted or personas.keys.for_new
            with atomic_replace.replacement(personas.directory, directory.name) as new_directory:
                copy = new_directory / DATABASE_NAME.replace(".", "-copy.")
                key = secrets.token_bytes(KEY_BYTES) if manifest.encrypted else None  # of the copy; only in memory
                small = extract(copy, key, progress)
                snapshots.verify(copy, key, manifest.contents)
                done = Operation("restore_backup", None, now, metadata={"made_at": manifest.created_at.isoformat()})
                erased = finish(copy, key, {**purged, **(purged_since or {})}, done)
                contents = write_files(personas, new_directory, (copy, key), small.get(CONTEXT_NAME, b""), name, encrypted=encrypted)
    except OSError as error:
        raise refusal(error, f"{backup.name} can't be restored", "Make the backup readable and the data directory writable") from error
    personas.log.append(name, done)
    return Restored(name, manifest.created_at, contents, encrypted, erased, unknown)


def write_files(
    personas: Personas, new_directory: Path, copy: tuple[Path, bytes | None], context: bytes, name: str, *, encrypted: bool
) -> Contents:
    """Write the persona's files from a copy, and erase the copy's database. Returns the contents of the new database."""
    key = personas.keys.make(new_directory) if encrypted else None
    target = new_directory / DATABASE_NAME
    snapshots.convert(*copy, target, key.database if key else None)
    expected = snapshots.contents_of(*copy)
    shred(copy[0])
    snapshots.verify(target, key.database if key else None, expected)
    target.chmod(PRIVATE_FILE)
    if context:
        write_atomically(new_directory / CONTEXT_NAME, seal(context, key.files) if key else context)
    write_identity(new_directory, name)
    return expected


def finish(copy: Path, key: bytes | None, purged: dict[str, str], done: Operation) -> int:
    """Bring a copied database up to date, erase again what was purged since, and record the operation. Returns how many memories were erased;
    the file still holds traces of them."""
    with closing(snapshots.open_copy(copy, key)) as connection:
        connection.execute("PRAGMA temp_store=MEMORY; PRAGMA foreign_keys=ON")
        prepare(connection)
        with immediate(connection):
            erased = erasure.erase_again(connection, purged, done.timestamp)
            operations.record(connection, done)
        return erased
