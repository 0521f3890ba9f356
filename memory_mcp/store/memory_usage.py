"""What looking for something to tidy reads: many memories with few columns, and their vectors; and how often each is used."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import apsw
import numpy as np

from memory_mcp.store.memories import CURRENT, EVENT_TIME
from memory_mcp.store.sqlite.bulk_rows import packed
from memory_mcp.store.timestamps import from_text, to_text
from memory_mcp.store.vectors.stored_vectors import BLOB_TYPE, Ids, Matrix
from memory_mcp.text.budget import estimate_tokens


@dataclass(frozen=True, slots=True)
class Row:
    """A memory as far as it matters for tidying. `last_touched`: when it was last used, else when it happened."""

    id: int
    content: str
    importance: float
    usage_count: int
    last_touched: datetime


def comparable(connection: apsw.Connection, limit: int, budget: int, longest: int) -> list[Row]:
    """The current memories that were stored last, the latest first, without summaries and what has more than `longest` characters:
    at most `limit`, and together within a `budget` of tokens as `estimate_tokens` counts them.
    """
    found = connection.execute(
        f"SELECT m.id, m.content, m.importance, m.usage_count, max(coalesce(m.last_used_at, ''), {EVENT_TIME}) FROM memories m "
        f"WHERE {CURRENT} AND m.kind <> 'summary' AND length(m.content) <= ? ORDER BY m.id DESC LIMIT ?",
        (longest, limit),
    )
    rows: list[Row] = []
    for memory_id, content, importance, uses, touched in found:
        budget -= estimate_tokens(content)
        if budget < 0:
            break
        rows.append(Row(memory_id, content, importance, uses, from_text(touched)))
    return rows


def touches(connection: apsw.Connection, memory_ids: Sequence[int]) -> dict[int, tuple[datetime, float, int]]:
    """Of each of these memories: when it was last touched, its importance, and how often it was used."""
    sql = (
        f"SELECT m.id AS id, max(coalesce(m.last_used_at, ''), {EVENT_TIME}) AS touched, m.importance AS importance, "
        "m.usage_count AS uses FROM memories m WHERE m.id IN (SELECT value FROM json_each(?))"
    )
    rows = packed(connection, "id, touched, importance, uses", sql, (json.dumps(list(memory_ids)),))
    return {memory_id: (from_text(touched), importance, uses) for memory_id, touched, importance, uses in rows}


def single_vectors(connection: apsw.Connection, generation: str, memory_ids: Sequence[int]) -> tuple[Ids, Matrix]:
    """The vectors of those of these memories that have one piece only: (memory ids, one row each)."""
    rows = list(
        connection.execute(
            "SELECT c.memory_id, v.blob FROM chunks c CROSS JOIN vectors v ON v.chunk = c.id AND v.generation = ? "
            "WHERE c.memory_id IN (SELECT value FROM json_each(?)) AND c.question IS NULL GROUP BY c.memory_id HAVING count(*) = 1",
            (generation, json.dumps(list(memory_ids))),
        )
    )
    if not rows:
        return np.empty(0, np.int64), np.empty((0, 0), np.float32)
    blobs = np.frombuffer(b"".join(blob for _, blob in rows), BLOB_TYPE)
    return np.array([memory_id for memory_id, _ in rows], np.int64), blobs.astype(np.float32).reshape(len(rows), -1)


def note_use(connection: apsw.Connection, uses: Mapping[str, tuple[int, datetime]]) -> None:
    """Counts uses: by key how many there were, and when the last was. Changes nothing else of a memory."""
    connection.executemany(
        "UPDATE memories SET usage_count = usage_count + ?, last_used_at = max(coalesce(last_used_at, ''), ?) WHERE key = ?",
        [(count, to_text(at), key) for key, (count, at) in uses.items()],
    )
