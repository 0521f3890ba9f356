"""Which memories replace others, the texts of those, and when a memory was stored again."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import apsw

from memory_mcp.domain import Confirmation, Memory
from memory_mcp.store.feedback import standing_against
from memory_mcp.store.memory_rows import COLUMNS, memory_of
from memory_mcp.store.operations import CONFIRM
from memory_mcp.store.sqlite.bulk_rows import json_ids
from memory_mcp.store.timestamps import optional_from_text, to_text

# When a memory was last stored again, and what it replaced.
_CONFIRMATION = """
    nullif(max(
        coalesce((SELECT max(s.created_at) FROM memories s
            WHERE s.write_digest = m.write_digest AND s.created_at > m.created_at AND s.deleted_at IS NULL), ''),
        coalesce((SELECT max(o.timestamp) FROM operations o WHERE o.key = m.key AND o.operation = ?2), '')), ''),
    (SELECT p.content FROM memories p WHERE p.key = m.supersedes AND p.deleted_at IS NULL AND (p.expires_at IS NULL OR p.expires_at > ?3))"""


def successors(connection: apsw.Connection, key: str) -> list[str]:
    """The keys of memories outside the trash that directly replace this one."""
    return [
        row[0] for row in connection.execute("SELECT key FROM memories WHERE supersedes = ? AND deleted_at IS NULL ORDER BY id", (key,))
    ]


def replaced_by(connection: apsw.Connection, successors: Sequence[Memory]) -> list[int]:
    """The ids of the memories that these replace or were merged from, recursively."""
    rows = connection.execute(
        "WITH RECURSIVE replaced(id, key, supersedes) AS ("
        "SELECT id, key, supersedes FROM memories WHERE key IN (SELECT value FROM json_each(?)) "
        "UNION SELECT b.id, b.key, b.supersedes FROM merges g JOIN memories b ON b.key = g.key "
        "WHERE g.into_key IN (SELECT value FROM json_each(?)) "
        "UNION SELECT p.id, p.key, p.supersedes FROM replaced r JOIN memories p ON p.key = r.supersedes "
        "UNION SELECT b.id, b.key, b.supersedes FROM replaced r JOIN merges g ON g.into_key = r.key JOIN memories b ON b.key = g.key) "
        "SELECT id FROM replaced",
        (json.dumps([memory.supersedes for memory in successors if memory.supersedes]), json.dumps([memory.key for memory in successors])),
    )
    return [row[0] for row in rows]


def confirmations(connection: apsw.Connection, ids: Sequence[int], now: datetime) -> Mapping[int, Confirmation]:
    """Memory → what confirms or changes it."""
    rows = _confirmed(connection, "m.id", ids, now)
    against = standing_against(connection, ids)
    return {
        memory_id: Confirmation(optional_from_text(confirmed_at), replaced, against.get(memory_id))
        for memory_id, confirmed_at, replaced in rows
    }


def confirmed_memories(connection: apsw.Connection, ids: Sequence[int], now: datetime) -> tuple[dict[int, Memory], dict[int, Confirmation]]:
    """The memories with these ids, and what confirms or changes them."""
    read = {}
    confirmed = {}
    for *row, confirmed_at, replaced in _confirmed(connection, COLUMNS, ids, now):
        memory = memory_of(tuple(row))
        read[memory.id] = memory
        confirmed[memory.id] = Confirmation(optional_from_text(confirmed_at), replaced)
    return read, confirmed


def _confirmed(connection: apsw.Connection, columns: str, ids: Sequence[int], now: datetime) -> Iterable[Any]:
    sql = f"SELECT {columns}, {_CONFIRMATION} FROM memories m WHERE m.id IN (SELECT value FROM json_each(?1))"
    return connection.execute(sql, (json_ids(ids), CONFIRM, to_text(now)))
