"""Every earlier state of a memory, whole: what it said, and whatever else its row held at that time."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import apsw

from memory_mcp.domain import Memory
from memory_mcp.store.timestamps import from_text, to_text

# What a version has a column for, what never changes, what follows from the text, and what says how a memory is used.
_NOT_FURTHER = frozenset(
    "id key content tags importance updated_at revision created_at supersedes deleted_at usage_count last_used_at write_digest micro_summary".split()
)

# A text that comes back does not open what was closed meanwhile, nor undo what was noted beside it.
_STAYS = frozenset({"privacy_level", "metadata"})


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
