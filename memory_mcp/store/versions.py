"""Every earlier state of a memory, whole: what it said, and whatever else its row held at that time."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import apsw

from memory_mcp.domain import Memory
from memory_mcp.domain import Version as ExportedVersion
from memory_mcp.store.timestamps import from_text, to_text

# What a version has a column for, what never changes, what follows from the text, and what says how a memory is used.
_NOT_FURTHER = frozenset(
    "id key content tags importance updated_at revision created_at supersedes deleted_at usage_count last_used_at write_digest micro_summary".split()
)

# A text that comes back does not open what was closed meanwhile, nor undo what was noted beside it.
_STAYS = frozenset({"privacy_level", "metadata"})

_EXPORTED_COLUMNS = "key, revision, content, updated_at, tags, importance, reason, category, privacy_level"


@dataclass(frozen=True, slots=True)
class Version:
    """A state that a memory had since `since`, until a change that was made for `reason`. `further`: its other columns as stored."""

    key: str
    revision: int
    content: str
    tags: tuple[str, ...]
    importance: float
    since: datetime
    reason: str | None = None
    further: Mapping[str, Any] | None = None


def keep(connection: apsw.Connection, memory: Memory, reason: str | None) -> None:
    """Puts the state that is about to change among the versions."""
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
    found = connection.execute(
        "SELECT key, revision, content, tags, importance, updated_at, reason, further FROM memory_versions "
        "WHERE key = ? ORDER BY revision DESC",
        (key,),
    )
    return [
        Version(
            key,
            revision,
            content,
            tuple(json.loads(tags)) if tags else (),
            importance,
            from_text(updated_at),
            reason,
            json.loads(further) if further else None,
        )
        for key, revision, content, tags, importance, updated_at, reason, further in found
    ]


def put_back_further(connection: apsw.Connection, memory_id: int, version: Version) -> None:
    """Gives a memory's row the other columns of an earlier state. One that was kept before they were has none to give."""
    known = set(_columns(connection))
    for name, value in (version.further or {}).items():
        if name in known and name not in _NOT_FURTHER | _STAYS:
            connection.execute(f'UPDATE memories SET "{name}" = ? WHERE id = ?', (value, memory_id))


def _further(connection: apsw.Connection, memory_id: int) -> dict[str, Any]:
    names = [name for name in _columns(connection) if name not in _NOT_FURTHER]
    selected = ", ".join(f'"{name}"' for name in names)
    row = connection.execute(f"SELECT {selected} FROM memories WHERE id = ?", (memory_id,)).fetchone()
    return dict(zip(names, row, strict=True)) if row else {}


def _columns(connection: apsw.Connection) -> list[str]:
    return [row[0] for row in connection.execute("SELECT name FROM pragma_table_info('memories')")]


def for_export(connection: apsw.Connection, key: str, include_secret: bool = True) -> list[ExportedVersion]:
    """Every earlier state of a memory that is kept, the first one first; those in which it was secret only where somebody says so."""
    condition = "" if include_secret else "AND coalesce(privacy_level, '') <> 'secret'"
    rows = connection.execute(f"SELECT {_EXPORTED_COLUMNS} FROM memory_versions WHERE key = ? {condition} ORDER BY revision", (key,))
    return [
        ExportedVersion(key, revision, content, from_text(updated_at), tuple(json.loads(tags)) if tags else (), importance, *rest)
        for key, revision, content, updated_at, tags, importance, *rest in rows
    ]


def had_state(connection: apsw.Connection, key: str, content: str, tags: Sequence[str], importance: float) -> bool:
    """Whether a memory was in this very state before."""
    found = connection.execute(
        "SELECT tags FROM memory_versions WHERE key = ? AND content = ? AND importance = ?", (key, content, importance)
    )
    return any((json.loads(row[0]) if row[0] else []) == list(tags) for row in found)


def add_imported(connection: apsw.Connection, version: ExportedVersion) -> bool:
    """Puts a state among the versions of a memory. False when that revision is there already, whatever it says."""
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
            # The one thing beside text, tags and importance that a revision can change: it comes back with the rest.
            json.dumps({"category": version.category}, ensure_ascii=False),
        ),
    )
    return connection.changes() > 0
