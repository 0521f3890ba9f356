"""Finds what was purged after a backup was made, so that restoring it doesn't bring the memories back."""

import logging
import secrets
from contextlib import closing
from pathlib import Path

import apsw

from memory_mcp.config.master_key import KEY_BYTES
from memory_mcp.errors import MemoryMCPError, StoreError
from memory_mcp.personas import atomic_replace
from memory_mcp.personas.directories import identity
from memory_mcp.personas.registry import Personas
from memory_mcp.store import operations, tombstones
from memory_mcp.store.files import backup_archive
from memory_mcp.store.files.backup_archive import FindKey, Manifest
from memory_mcp.store.sqlite import snapshots
from memory_mcp.store.sqlite.database import DATABASE_NAME
from memory_mcp.upkeep.backup import Backup, newest_in_same_directory, no_progress

logger = logging.getLogger(__name__)

Tombstones = dict[str, str]


def erased_since(personas: Personas, backup: Path, manifest: Manifest, to: str, find_key: FindKey) -> tuple[Tombstones, bool]:
    """Key digest → time of known purges, and whether there may be others, because a source is missing or damaged.

    The sources are the persona of the backup, by its name at that time and by the directory of the backup (in case it was renamed); the
    persona that is restored; and the newest backup in the same directory.
    """
    own = {manifest.persona, _current_name(personas.directory / backup.absolute().parent.name)} - {None}
    sources = [_of_persona(personas, name) for name in sorted(str(name) for name in own if name and personas.exists(name))]
    also = [_of_persona(personas, to)] if to not in own and personas.exists(to) else []
    later = _of_later_backup(personas, backup, manifest, find_key)
    known = [source for source in (*sources, later) if source is not None]
    purged = {digest: at for source in (*known, *(source for source in also if source)) for digest, at in source.items()}
    return purged, not known or None in (*sources, *also)


def _current_name(directory: Path) -> str | None:
    try:
        return identity(directory)
    except StoreError:
        return None


def _of_persona(personas: Personas, name: str) -> Tombstones | None:
    """None if the persona can't be read; damage may be the reason for the restore."""
    try:
        with personas.reading(name) as persona, persona.database.read() as connection:
            return dict(tombstones.read_all(connection))
    except StoreError:
        return None


def _of_later_backup(personas: Personas, backup: Path, manifest: Manifest, find_key: FindKey) -> Tombstones | None:
    """None if there is no later backup of the same persona, or it can't be read."""
    newest = newest_in_same_directory(backup)
    if newest is None or newest.made_at <= manifest.created_at or newest.path == backup.absolute():
        return None
    return erased_before(personas, newest, manifest.persona, find_key)


def erased_before(personas: Personas, newest: Backup, earlier: str, find_key: FindKey) -> Tombstones | None:
    """Key digest → time of the purges that a backup knows of, of a persona that had a name before. None if it is of another persona, or can't be
    read."""
    try:
        with (
            backup_archive.opened(newest.path, find_key) as (later, extract),
            atomic_replace.scratch(personas.directory, "erased-since") as scratch,
        ):
            copy, key = scratch / DATABASE_NAME, secrets.token_bytes(KEY_BYTES) if later.encrypted else None
            extract(copy, key, no_progress)
            with closing(snapshots.open_copy(copy, key)) as connection:
                return _from_database(connection, later.persona, earlier)
    except (MemoryMCPError, OSError) as error:
        logger.warning("%s can't be read to find what was erased before it was made: %s", newest.path.name, error)
        return None


def _from_database(connection: apsw.Connection, later: str, earlier: str) -> Tombstones | None:
    # Another persona, such as a copy, may have the same keys: what was purged there wasn't purged here.
    if later == earlier or earlier in operations.former_names(connection):
        return dict(tombstones.read_all(connection))
    return None
