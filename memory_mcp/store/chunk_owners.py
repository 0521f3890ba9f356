"""Which memories chunks belong to, and which chunks memories have, as recall asks it."""

import json
from collections.abc import Iterable, Sequence

import apsw

from memory_mcp.domain import Filters
from memory_mcp.store.memories import where
from memory_mcp.store.vector_table import SEARCHABLE


def owners(connection: apsw.Connection, chunks: Sequence[int]) -> dict[int, int]:
    """Chunk → memory, for the chunks of current memories. An index may be a moment ahead of, or behind, what a reader sees."""
    found = connection.execute(
        f"SELECT c.id, c.memory_id FROM chunks c JOIN memories m ON m.id = c.memory_id "
        f"WHERE c.id IN (SELECT value FROM json_each(?)) AND {SEARCHABLE}",
        (json.dumps(list(chunks)),),
    )
    return dict(found)


def passing(connection: apsw.Connection, filters: Filters) -> list[int]:
    """The chunks of the memories that pass the filters."""
    condition, values = where(filters)
    found = connection.execute(
        f"SELECT c.id FROM memories m JOIN chunks c ON c.memory_id = m.id WHERE m.deleted_at IS NULL {condition}", values
    )
    return [row[0] for row in found]


def of_each(connection: apsw.Connection, memory_ids: Iterable[int]) -> dict[int, list[int]]:
    """Memory → its chunks."""
    found: dict[int, list[int]] = {}
    for memory_id, chunk in connection.execute(
        "SELECT memory_id, id FROM chunks WHERE memory_id IN (SELECT value FROM json_each(?))", (json.dumps(list(memory_ids)),)
    ):
        found.setdefault(memory_id, []).append(chunk)
    return found


def spans(connection: apsw.Connection, chunks: Sequence[int]) -> dict[int, tuple[int, int]]:
    """Chunk → its place in the content; one that is a question has none."""
    rows = connection.execute(
        'SELECT id, start, "end" FROM chunks WHERE question IS NULL AND id IN (SELECT value FROM json_each(?))', (json.dumps(list(chunks)),)
    )
    return {chunk: (start, end) for chunk, start, end in rows}
