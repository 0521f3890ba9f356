"""The pieces of each memory that get a vector, as places in its content."""

from collections.abc import Sequence

import apsw

from memory_mcp.domain import Chunk


def replace(connection: apsw.Connection, memory_id: int, chunks: Sequence[Chunk]) -> None:
    """Gives a memory these chunks instead of the ones it had. Vectors of the old ones go with them."""
    connection.execute("DELETE FROM chunks WHERE memory_id = ?", (memory_id,))
    connection.executemany(
        'INSERT INTO chunks(memory_id, start, "end") VALUES (?, ?, ?)', [(memory_id, chunk.start, chunk.end) for chunk in chunks]
    )


def of_memory(connection: apsw.Connection, memory_id: int) -> list[Chunk]:
    """The chunks of a memory in order."""
    found = connection.execute('SELECT start, "end" FROM chunks WHERE memory_id = ? ORDER BY start', (memory_id,))
    return [Chunk(start, end) for start, end in found]
