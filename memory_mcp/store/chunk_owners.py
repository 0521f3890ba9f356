"""Which memories chunks belong to, which of them a reader may see, and where they stand, as recall asks it."""

import json
from collections.abc import Iterable, Sequence

import apsw

from memory_mcp.domain import Filters
from memory_mcp.store.memories import where
from memory_mcp.store.sqlite.bulk_rows import packed
from memory_mcp.store.vectors.stored_vectors import SEARCHABLE


def owners(connection: apsw.Connection, chunks: Sequence[int]) -> dict[int, int]:
    """Chunk → memory, for the chunks of current memories. An index may be a moment ahead of, or behind, what a reader sees."""
    sql = (
        f"SELECT c.id AS chunk, c.memory_id AS owner FROM chunks c JOIN memories m ON m.id = c.memory_id "
        f"WHERE c.id IN (SELECT value FROM json_each(?)) AND {SEARCHABLE}"
    )
    return dict(packed(connection, "chunk, owner", sql, (json.dumps(list(chunks)),)))


def passing(connection: apsw.Connection, filters: Filters) -> list[int]:
    """The chunks of the memories that pass the filters."""
    condition, values = where(filters)
    sql = f"SELECT c.id AS chunk FROM memories m JOIN chunks c ON c.memory_id = m.id WHERE m.deleted_at IS NULL {condition}"
    return [chunk for (chunk,) in packed(connection, "chunk", sql, values)]


def of_memories(connection: apsw.Connection, memory_ids: Iterable[int]) -> dict[int, tuple[int, bool]]:
    """The chunks of these memories, each with its memory, and whether it is a question that the memory answers."""
    sql = "SELECT id, memory_id, question IS NOT NULL AS asks FROM chunks WHERE memory_id IN (SELECT value FROM json_each(?)) ORDER BY id"
    rows = packed(connection, "id, memory_id, asks", sql, (json.dumps(list(memory_ids)),))
    return {chunk: (memory_id, bool(asks)) for chunk, memory_id, asks in rows}


def spans(connection: apsw.Connection, chunks: Sequence[int]) -> dict[int, tuple[int, int]]:
    """Chunk → its place in the content; one that is a question has none."""
    if not chunks:
        return {}
    sql = 'SELECT id, start, "end" FROM chunks WHERE question IS NULL AND id IN (SELECT value FROM json_each(?))'
    rows = packed(connection, 'id, start, "end"', sql, (json.dumps(list(chunks)),))
    return {chunk: (start, end) for chunk, start, end in rows}
