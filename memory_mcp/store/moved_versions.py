"""The earlier states of memories, as an export writes and an import brings them."""

import json
from collections.abc import Sequence

import apsw

from memory_mcp.domain import Version
from memory_mcp.store.timestamps import from_text, to_text

_COLUMNS = "key, revision, content, updated_at, tags, importance, reason, category, privacy_level"


def of_memory(connection: apsw.Connection, key: str, include_secret: bool = True) -> list[Version]:
    """Every earlier state of a memory that is kept, the first one first; those in which it was secret only where somebody says so."""
    condition = "" if include_secret else "AND coalesce(privacy_level, '') <> 'secret'"
    rows = connection.execute(f"SELECT {_COLUMNS} FROM memory_versions WHERE key = ? {condition} ORDER BY revision", (key,))
    return [
        Version(key, revision, content, from_text(updated_at), tuple(json.loads(tags)) if tags else (), importance, *rest)
        for key, revision, content, updated_at, tags, importance, *rest in rows
    ]


def said_before(connection: apsw.Connection, key: str, content: str, tags: Sequence[str], importance: float) -> bool:
    """Whether a memory was in this very state before."""
    found = connection.execute(
        "SELECT tags FROM memory_versions WHERE key = ? AND content = ? AND importance = ?", (key, content, importance)
    )
    return any((json.loads(row[0]) if row[0] else []) == list(tags) for row in found)


def add(connection: apsw.Connection, version: Version) -> bool:
    """Puts a state among the versions of a memory. False when that revision is there already, whatever it says."""
    connection.execute(
        f"INSERT OR IGNORE INTO memory_versions({_COLUMNS}, further) VALUES (?1,?2,?3,?4,?5,?6,?7,?8,"
        "coalesce(?9, (SELECT privacy_level FROM memories WHERE key = ?1), 'internal'), ?10)",
        (
            version.key,
            version.revision,
            version.content,
            to_text(version.updated_at),
            json.dumps(version.tags, ensure_ascii=False),
            version.importance,
            version.reason,
            version.category,
            version.privacy_level,
            # The one thing beside text, tags and importance that a revision can change: it comes back with the rest.
            json.dumps({"category": version.category}, ensure_ascii=False),
        ),
    )
    return connection.changes() > 0
