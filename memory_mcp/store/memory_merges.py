"""Merges of memories: which memory was merged into which, and the recorded operations by which a merge is undone."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import apsw

from memory_mcp.domain import Memory


@dataclass(frozen=True, slots=True)
class Recorded:
    """The part of an operation that concerns one memory; content that a purge has erased is None."""

    key: str
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None
    timestamp: str
    metadata: Mapping[str, Any]


def note(connection: apsw.Connection, key: str, into: str) -> None:
    """Record that `key` was merged into `into`, replacing an earlier entry."""
    connection.execute("INSERT OR REPLACE INTO merges VALUES (?, ?)", (key, into))


def targets(connection: apsw.Connection, keys: Sequence[str]) -> dict[str, str]:
    """Memory → the memory into which it was merged, for those of these that were."""
    rows = connection.execute("SELECT key, into_key FROM merges WHERE key IN (SELECT value FROM json_each(?))", (json.dumps(list(keys)),))
    return dict(rows)


def drop(connection: apsw.Connection, keys: Sequence[str]) -> None:
    """Delete the merges of these memories."""
    connection.execute("DELETE FROM merges WHERE key IN (SELECT value FROM json_each(?))", (json.dumps(list(keys)),))


def bridge(connection: apsw.Connection, keys: Sequence[str]) -> None:
    """For a purge: let the replacement of each of these memories also replace what they replaced, so that nothing old becomes current.

    Call it in the transaction of the purge, before the rows are deleted.
    """
    for key in keys:
        into = connection.execute("SELECT into_key FROM merges WHERE key = ?", (key,)).get
        replacement = into or connection.execute("SELECT key FROM memories WHERE supersedes = ? ORDER BY id LIMIT 1", (key,)).get
        if into:
            connection.execute(
                "INSERT OR IGNORE INTO merges SELECT supersedes, ? FROM memories WHERE key = ? AND supersedes IS NOT NULL", (into, key)
            )
        if replacement:
            connection.execute("UPDATE merges SET into_key = ? WHERE into_key = ?", (replacement, key))
        connection.execute("DELETE FROM merges WHERE key = ?1 OR into_key = ?1", (key,))


def recorded(connection: apsw.Connection, operation_id: str, operation: str) -> list[Recorded]:
    """The parts of a merge operation, that of the kept memory first."""
    rows = connection.execute(
        "SELECT key, before, after, timestamp, metadata FROM operations WHERE operation_id = ? AND operation = ? ORDER BY id",
        (operation_id, operation),
    )
    return [_recorded(row) for row in rows]


def undone(connection: apsw.Connection, operation_id: str, operation: str) -> bool:
    """Whether an operation with this name undoes that one."""
    rows = connection.execute(
        "SELECT 1 FROM operations WHERE operation = ? AND json_extract(metadata, '$.undoes') = ? LIMIT 1", (operation, operation_id)
    )
    return rows.get is not None


def latest(connection: apsw.Connection, operation: str, undoing: str, limit: int) -> list[tuple[str, Recorded]]:
    """The latest merges that weren't undone, the latest first: operation_id and the part of the kept memory."""
    rows = connection.execute(
        "SELECT operation_id, key, before, after, timestamp, metadata FROM operations o WHERE operation = ? "
        "AND json_extract(metadata, '$.of') IS NOT NULL AND NOT EXISTS ("
        "SELECT 1 FROM operations u WHERE u.operation = ? AND json_extract(u.metadata, '$.undoes') = o.operation_id) ORDER BY id DESC LIMIT ?",
        (operation, undoing, limit),
    )
    return [(row[0], _recorded(row[1:])) for row in rows]


def restore_state(
    connection: apsw.Connection, memory: Memory, tags: Sequence[str], importance: float, revision: int, updated_at: str
) -> None:
    """Restore an earlier state of a memory except its content, and delete the versions from that revision on."""
    connection.execute("DELETE FROM memory_versions WHERE key = ? AND revision >= ?", (memory.key, revision))
    connection.execute(
        "UPDATE memories SET tags = ?, importance = ?, revision = ?, updated_at = ? WHERE id = ?",
        (json.dumps(list(tags), ensure_ascii=False), importance, revision, updated_at, memory.id),
    )


def _recorded(row: Sequence[Any]) -> Recorded:
    key, before, after, timestamp, metadata = row
    return Recorded(key, _object(before), _object(after), timestamp, _object(metadata) or {})


def _object(text: str | None) -> Mapping[str, Any] | None:
    return json.loads(text) if text else None
