"""Which memory was merged into which, and the recorded merges, so that each can be undone."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import apsw

from memory_mcp.domain import Memory


@dataclass(frozen=True, slots=True)
class Recorded:
    """One memory's part of an operation; what a purge has erased is None."""

    key: str
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None
    timestamp: str
    metadata: Mapping[str, Any]


def note(connection: apsw.Connection, key: str, into: str) -> None:
    """Lets `into` stand in the place of `key`, whatever stood there before."""
    connection.execute("INSERT OR REPLACE INTO merges VALUES (?, ?)", (key, into))


def standing(connection: apsw.Connection, keys: Sequence[str]) -> dict[str, str]:
    """Into what each of these memories was merged, of those that were."""
    rows = connection.execute("SELECT key, into_key FROM merges WHERE key IN (SELECT value FROM json_each(?))", (json.dumps(list(keys)),))
    return dict(rows)


def drop(connection: apsw.Connection, keys: Sequence[str]) -> None:
    """These memories stand for themselves again."""
    connection.execute("DELETE FROM merges WHERE key IN (SELECT value FROM json_each(?))", (json.dumps(list(keys)),))


def bridge(connection: apsw.Connection, keys: Sequence[str]) -> None:
    """For a purge: what these memories stood for passes to whoever stands for them, so that nothing they had replaced comes to light.

    Call it in the purge's transaction, while their rows are still there.
    """
    for key in keys:
        into = connection.execute("SELECT into_key FROM merges WHERE key = ?", (key,)).get
        heir = into or connection.execute("SELECT key FROM memories WHERE supersedes = ? ORDER BY id LIMIT 1", (key,)).get
        if into:
            connection.execute(
                "INSERT OR IGNORE INTO merges SELECT supersedes, ? FROM memories WHERE key = ? AND supersedes IS NOT NULL", (into, key)
            )
        if heir:
            connection.execute("UPDATE merges SET into_key = ? WHERE into_key = ?", (heir, key))
        connection.execute("DELETE FROM merges WHERE key = ?1 OR into_key = ?1", (key,))


def recorded(connection: apsw.Connection, operation_id: str, operation: str) -> list[Recorded]:
    """The parts of an operation, the kept memory's first."""
    found = connection.execute(
        "SELECT key, before, after, timestamp, metadata FROM operations WHERE operation_id = ? AND operation = ? ORDER BY id",
        (operation_id, operation),
    )
    return [_recorded(row) for row in found]


def undone(connection: apsw.Connection, operation_id: str, operation: str) -> bool:
    """Whether an operation of this name says that it undoes that one."""
    found = connection.execute(
        "SELECT 1 FROM operations WHERE operation = ? AND json_extract(metadata, '$.undoes') = ? LIMIT 1", (operation, operation_id)
    )
    return found.get is not None


def latest(connection: apsw.Connection, operation: str, undoing: str, limit: int) -> list[tuple[str, Recorded]]:
    """The last merges that were not undone, the latest first: operation_id, and the kept memory's part."""
    found = connection.execute(
        "SELECT operation_id, key, before, after, timestamp, metadata FROM operations o WHERE operation = ? "
        "AND json_extract(metadata, '$.of') IS NOT NULL AND NOT EXISTS ("
        "SELECT 1 FROM operations u WHERE u.operation = ? AND json_extract(u.metadata, '$.undoes') = o.operation_id) ORDER BY id DESC LIMIT ?",
        (operation, undoing, limit),
    )
    return [(row[0], _recorded(row[1:])) for row in found]


def put_back(connection: apsw.Connection, memory: Memory, tags: Sequence[str], importance: float, revision: int, updated_at: str) -> None:
    """Gives a memory an earlier state of everything but its content; the versions from then on are those of the state that goes."""
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
