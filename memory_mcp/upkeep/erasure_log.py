"""What was erased for good after a backup was made: whoever restores it asks all who may know."""

import logging
import secrets
from pathlib import Path

import apsw

from memory_mcp.config.master_key import KEY_BYTES
from memory_mcp.errors import MemoryMCPError, StoreDamaged, StoreError
from memory_mcp.personas import atomic_replace
from memory_mcp.personas.directories import identity
from memory_mcp.personas.registry import Personas
from memory_mcp.store import operations, tombstones
from memory_mcp.store.files import backup_archive
from memory_mcp.store.files.backup_archive import FindKey, Manifest
from memory_mcp.store.sqlite import snapshots
from memory_mcp.store.sqlite.database import DATABASE_NAME
from memory_mcp.upkeep.backup import newest_beside, unseen

logger = logging.getLogger(__name__)

Graves = dict[str, str]


def erased_since(personas: Personas, backup: Path, manifest: Manifest, to: str, find_key: FindKey) -> tuple[Graves, bool]:
    """Digest → time of what is known to have been erased, and whether there may be more, because nobody is here who would know.

    Asked are the persona that the backup is of, by its name then and, where it was renamed, by the directory in which the backup lies;
    the persona that it is to become; and the newest backup beside it.
    """
    own = {manifest.persona, _living_in(personas.directory / backup.absolute().parent.name)} - {None}
    told = [_of_persona(personas, name) for name in sorted(str(name) for name in own if name and personas.exists(name))]
    also = [_of_persona(personas, to)] if to not in own and personas.exists(to) else []
    beside = _of_later_backup(personas, backup, manifest, find_key)
    known = [found for found in (*told, beside) if found is not None]
    graves = {digest: at for found in (*known, *(one for one in also if one)) for digest, at in found.items()}
    return graves, not known or None in (*told, *also)


def _living_in(directory: Path) -> str | None:
    try:
        return identity(directory)
    except StoreDamaged:
        return None


def _of_persona(personas: Personas, name: str) -> Graves | None:
    """None: it can't be asked. That it is damaged may be why its backup is restored."""
    try:
        with personas.reading(name) as persona, persona.database.read() as connection:
            return dict(tombstones.read_all(connection))
    except StoreError:
        return None


def _of_later_backup(personas: Personas, backup: Path, manifest: Manifest, find_key: FindKey) -> Graves | None:
    """None: there is no later one of the same persona, or it can't be read."""
    newest = newest_beside(backup)
    if newest is None or newest.made_at <= manifest.created_at or newest.path == backup.absolute():
        return None
    try:
        with (
            backup_archive.opened(newest.path, find_key) as (later, extract),
            atomic_replace.scratch(personas.directory, "erased-since") as scratch,
        ):
            copy, key = scratch / DATABASE_NAME, secrets.token_bytes(KEY_BYTES) if later.encrypted else None
            extract(copy, key, unseen)
            connection = snapshots.open_copy(copy, key)
            try:
                return _told_by(connection, later.persona, manifest.persona)
            finally:
                connection.close()
    except (MemoryMCPError, OSError) as error:
        logger.warning("%s can't be asked what was erased before it was made: %s", newest.path.name, error)
        return None


def _told_by(connection: apsw.Connection, later: str, earlier: str) -> Graves | None:
    # Another persona may have keys of this one's, such as a copy: what was erased there was not erased here.
    if later == earlier or earlier in operations.former_names(connection):
        return dict(tombstones.read_all(connection))
    return None
