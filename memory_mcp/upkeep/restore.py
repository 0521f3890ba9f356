"""Restoring a backup: to a persona that is not there, or instead of one that is. The server is stopped meanwhile."""

import logging
import secrets
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from memory_mcp.config.master_key import KEY_BYTES
from memory_mcp.errors import InvalidInput, MemoryMCPError, StoreError
from memory_mcp.personas import replacing
from memory_mcp.personas.directories import DATABASE_NAME, IDENTITY_NAME, identity_text
from memory_mcp.personas.names import canonical_name
from memory_mcp.personas.registry import Personas, prepare
from memory_mcp.store import archives, erasure, operations, snapshots, tombstones
from memory_mcp.store.archives import FindKey, Manifest
from memory_mcp.store.database import immediate
from memory_mcp.store.files import refusal, shred, write_atomically
from memory_mcp.store.operations import Operation
from memory_mcp.store.persona_context import FILE_NAME as CONTEXT_NAME
from memory_mcp.store.sealed import seal
from memory_mcp.store.snapshots import Contents, Progress
from memory_mcp.upkeep.backup import newest_beside, unseen

logger = logging.getLogger(__name__)


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
        with archives.opened(backup, find_key) as (manifest, extract):
            name = canonical_name(to if to is not None else manifest.persona)
            directory = personas.path_of(name).parent
            if directory.exists() and not instead:
                raise InvalidInput(
                    f"there is a persona {name!r} already", "", "Say --replace to have the backup instead of it, or --as and another name"
                )
            graves, unknown = _erased_since(personas, backup, manifest, name, find_key)
            encrypted = manifest.encrypted or personas.keys.for_new
            with replacing.replacement(personas.directory, directory.name) as fresh:
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
    write_atomically(fresh / IDENTITY_NAME, identity_text(name))


def _erased_since(personas: Personas, backup: Path, manifest: Manifest, to: str, find_key: FindKey) -> tuple[dict[str, str], bool]:
    """What is known to have been erased after a backup was made, by the persona that is there, the one that it is to become, and the
    newest backup beside it; and whether nobody could be asked who knows all of it."""
    there, unknown = _erased_of(personas, manifest.persona)
    other, other_unknown = _erased_of(personas, to)
    beside = _erased_before(personas, backup, manifest, find_key)
    return {**(beside or {}), **(other or {}), **(there or {})}, unknown or other_unknown or (there is None and beside is None)


def _erased_of(personas: Personas, name: str) -> tuple[dict[str, str] | None, bool]:
    """What a persona that is there has erased, None where there is none; and whether it could not be asked."""
    if not personas.exists(name):
        return None, False
    try:
        with personas.reading(name) as persona, persona.database.read() as connection:
            return dict(tombstones.everything(connection)), False
    except StoreError:  # that it is damaged may be why it is restored
        return None, True


def _erased_before(personas: Personas, backup: Path, manifest: Manifest, find_key: FindKey) -> dict[str, str] | None:
    """What had been erased when the newest backup was made that lies beside this one, and is of a later time; None where there is none,
    or none that can be read."""
    newest = newest_beside(backup)
    if newest is None or newest.made_at <= manifest.created_at or newest.path == backup:
        return None
    try:
        with archives.opened(newest.path, find_key) as (later, extract), replacing.scratch(personas.directory, "erased-since") as scratch:
            if later.persona != manifest.persona:
                return None
            copy, key = scratch / DATABASE_NAME, secrets.token_bytes(KEY_BYTES) if later.encrypted else None
            extract(copy, key, unseen)
            connection = snapshots.open_copy(copy, key)
            try:
                return dict(tombstones.everything(connection))
            finally:
                connection.close()
    except (MemoryMCPError, OSError) as error:
        logger.warning("%s can't be asked what was erased before it was made: %s", newest.path.name, error)
        return None


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
