"""The earlier states (versions) of memories, with all columns; also as exports and imports move them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import apsw

from memory_mcp.domain import Memory
from memory_mcp.domain import Version as ExportedVersion
from memory_mcp.store.timestamps import from_text, to_text

# Columns that a version has itself, that never change, that follow from the text, or that count usage.
_EXCLUDED_COLUMNS = frozenset(
    "id key content tags importance updated_at revision created_at supersedes deleted_at usage_count last_used_at write_digest micro_summary".split()
)

# Restoring an earlier text keeps the current privacy level, expiry and metadata.
_KEPT_ON_RESTORE = frozenset({"privacy_level", "expires_at", "metadata"})

_EXPORTED_COLUMNS = "key, revision, content, updated_at, tags, importance, reason, category, privacy_level"


@dataclass(frozen=True, slots=True)
class Version:
    """A state of a memory from `since` until a change made for `reason`. `further`: its other columns as stored."""

    key: str
    revision: int
    content: str
    tags: tuple[str, ...]
    importance: float
    since: datetime
    reason: str | None = None
    further: Mapping[str, Any] | None = None


def keep(connection: apsw.Connection, memory: Memory, reason: str | None) -> None:
    """Store the current state of a memory as a version, before a change."""
    connection.execute(
        "INSERT INTO memory_versions(key, revision, content, tags, importance, updated_at, reason, category, privacy_level, further) "
        "VALUES (?,?,?,?,?,?,?,?,?,?)",
        (
            memory.key,
            memory.revision,
            memory.content,
            json.dumps(memory.tags, ensure_ascii=False),
            memory.importance,
            to_text(memory.updated_at),
            reason,
            memory.category,
            memory.privacy_level,
            json.dumps(_further(connection, memory.id), ensure_ascii=False),
        ),
    )


def of_key(connection: apsw.Connection, key: str) -> list[Version]:
    """The earlier states of a memory, the latest first."""
    rows = connection.execute(
        "SELECT key, revision, content, tags, importance, updated_at, reason, further FROM memory_versions "
        "WHERE key = ? ORDER BY revision DESC",
        (key,),
    )
    return [
        Version(key, revision, content, _tags(tags), importance, from_text(updated_at), reason, json.loads(further) if further else None)
        for key, revision, content, tags, importance, updated_at, reason, further in rows
    ]


def restore_further(connection: apsw.Connection, memory_id: int, version: Version) -> None:
    """Restore the other columns of an earlier state. Versions from before these were stored have none."""
    known = set(_columns(connection))
    for name, value in (version.further or {}).items():
        if name in known and name not in _EXCLUDED_COLUMNS | _KEPT_ON_RESTORE:
            connection.execute(f'UPDATE memories SET "{name}" = ? WHERE id = ?', (value, memory_id))


def _further(connection: apsw.Connection, memory_id: int) -> dict[str, Any]:
    names = [name for name in _columns(connection) if name not in _EXCLUDED_COLUMNS]
    selected = ", ".join(f'"{name}"' for name in names)
    row = connection.execute(f"SELECT {selected} FROM memories WHERE id = ?", (memory_id,)).fetchone()
    return dict(zip(names, row, strict=True)) if row else {}


def _columns(connection: apsw.Connection) -> list[str]:
    return [row[0] for row in connection.execute("SELECT name FROM pragma_table_info('memories')")]


def for_export(connection: apsw.Connection, key: str, include_secret: bool = True) -> list[ExportedVersion]:
    """The earlier states of a memory, oldest first; secret ones only on request."""
    condition = "" if include_secret else "AND coalesce(privacy_level, '') <> 'secret'"
    rows = connection.execute(f"SELECT {_EXPORTED_COLUMNS} FROM memory_versions WHERE key = ? {condition} ORDER BY revision", (key,))
    return [
        ExportedVersion(key, revision, content, from_text(updated_at), _tags(tags), importance, *rest)
        for key, revision, content, updated_at, tags, importance, *rest in rows
    ]


def had_state(connection: apsw.Connection, key: str, content: str, tags: Sequence[str], importance: float) -> bool:
    """Whether a memory had exactly this state before."""
    rows = connection.execute(
        "SELECT tags FROM memory_versions WHERE key = ? AND content = ? AND importance = ?", (key, content, importance)
    )
    return any(_tags(row[0]) == tuple(tags) for row in rows)


def add_imported(connection: apsw.Connection, version: ExportedVersion) -> bool:
    """Add an imported version. Returns False if that revision exists already, whatever its content."""
    connection.execute(
        f"INSERT OR IGNORE INTO memory_versions({_EXPORTED_COLUMNS}, further) VALUES (?1,?2,?3,?4,?5,?6,?7,?8,"
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
            # Besides text, tags, and importance, a revision can change only the category; it is restored with them.
            json.dumps({"category": version.category}, ensure_ascii=False),
        ),
    )
    return connection.changes() > 0


def _tags(stored: str | None) -> tuple[str, ...]:
    return tuple(json.loads(stored)) if stored else ()
