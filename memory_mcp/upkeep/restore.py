"""Restoring a backup: to a persona that is not there, or instead of one that is. The server is stopped meanwhile."""

import secrets
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from memory_mcp.config.master_key import KEY_BYTES
from memory_mcp.errors import InvalidInput
from memory_mcp.personas import atomic_replace
from memory_mcp.personas.directories import write_identity
from memory_mcp.personas.names import canonical_name
from memory_mcp.personas.registry import Personas, prepare
from memory_mcp.store import erasure, operations
from memory_mcp.store.files import backup_archive
from memory_mcp.store.files.backup_archive import FindKey
from memory_mcp.store.files.durable_files import refusal, shred, write_atomically
from memory_mcp.store.files.persona_context import FILE_NAME as CONTEXT_NAME
from memory_mcp.store.files.sealed import seal
from memory_mcp.store.operations import Operation
from memory_mcp.store.sqlite import snapshots
from memory_mcp.store.sqlite.database import DATABASE_NAME, immediate
from memory_mcp.store.sqlite.snapshots import Contents, Progress
from memory_mcp.upkeep.backup import unseen
from memory_mcp.upkeep.erasure_log import erased_since


@dataclass(frozen=True, slots=True)
class Restored:
    """What came of it. `erased_again`: memories that were erased for good after the backup. `unknown_erased`: whether there may be more
    of those, because there is nobody here who would know."""

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
    progress: Progress = unseen,
) -> Restored:
    """Makes a persona of a backup, its own one or the one called `to`. `instead`: the one that is there gives way to it.

    Until all of it has been read, checked and written, what is there stays as it is; then it is exchanged by renames.

    Raises:
        KeyRefused: the backup is sealed, and its key is not there.
        InvalidInput: the persona is there, and nobody said that it is to give way.
        StoreDamaged: it is no backup, or not as it was written.
    """
    try:
        with backup_archive.opened(backup, find_key) as (manifest, extract):
            name = canonical_name(to if to is not None else manifest.persona)
            directory = personas.path_of(name).parent
            if directory.exists() and not instead:
                raise InvalidInput(
                    f"there is a persona {name!r} already", "", "Say --replace to have the backup instead of it, or --as and another name"
                )
            graves, unknown = erased_since(personas, backup, manifest, name, find_key)
            encrypted = manifest.encrypted or personas.keys.for_new
            with atomic_replace.replacement(personas.directory, directory.name) as fresh:
                copy = fresh / DATABASE_NAME.replace(".", "-copy.")
                key = secrets.token_bytes(KEY_BYTES) if manifest.encrypted else None  # of the copy, in memory alone
                small = extract(copy, key, progress)
                snapshots.verify(copy, key, manifest.contents)
                done = Operation("restore_backup", None, now, metadata={"made_at": manifest.created_at.isoformat()})
                erased = _brought_up_to_date(copy, key, graves, done)
                _put_together(personas, fresh, (copy, key), small.get(CONTEXT_NAME, b""), name, encrypted=encrypted)
    except OSError as error:
        raise refusal(error, f"{backup.name} can't be restored", "Make the backup readable and the data directory writable") from error
    personas.log.append(name, done)
    return Restored(name, manifest.created_at, manifest.contents, encrypted, erased, unknown)


def _put_together(personas: Personas, fresh: Path, copy: tuple[Path, bytes | None], context: bytes, name: str, *, encrypted: bool) -> None:
    """The files of the persona from those of the backup."""
    key = personas.keys.make(fresh) if encrypted else None
    target = fresh / DATABASE_NAME
    snapshots.convert(*copy, target, key.database if key else None)
    expected = snapshots.contents_of(*copy)
    shred(copy[0])
    snapshots.verify(target, key.database if key else None, expected)
    if context:
        write_atomically(fresh / CONTEXT_NAME, seal(context, key.files) if key else context)
    write_identity(fresh, name)


def _brought_up_to_date(copy: Path, key: bytes | None, graves: dict[str, str], done: Operation) -> int:
    connection = snapshots.open_copy(copy, key)
    try:
        connection.execute("PRAGMA temp_store=MEMORY; PRAGMA foreign_keys=ON")
        prepare(connection)
        with immediate(connection):
            erased = erasure.erase_again(connection, graves, done.timestamp)
            operations.record(connection, done)
        return erased
    finally:
        connection.close()
