"""The pieces of each memory that get a vector: places in its content, and the questions that it answers."""

import json
from collections.abc import Iterable, Sequence

import apsw

from memory_mcp.domain import Chunk
from memory_mcp.store.rows import packed


def replace(connection: apsw.Connection, memory_id: int, chunks: Sequence[Chunk], questions: Sequence[str] = ()) -> None:
    """Gives a memory these chunks, and one for each question, instead of the ones it had. Vectors of the old ones go with them."""
    drop(connection, memory_id)
    connection.executemany(
        'INSERT INTO chunks(memory_id, start, "end", question) VALUES (?, ?, ?, ?)',
        [
            *((memory_id, chunk.start, chunk.end, None) for chunk in chunks),
            *((memory_id, 0, 0, question) for question in dict.fromkeys(questions)),
        ],
    )


def drop(connection: apsw.Connection, memory_id: int) -> None:
    """Takes a memory's chunks away, with their vectors. What an open index has of them is noted, so that it goes there too."""
    connection.execute(
        "INSERT OR IGNORE INTO dropped_chunks SELECT v.chunk FROM vectors v JOIN chunks c ON c.id = v.chunk WHERE c.memory_id = ?",
        (memory_id,),
    )
    connection.execute("DELETE FROM chunks WHERE memory_id = ?", (memory_id,))


def of_memory(connection: apsw.Connection, memory_id: int) -> list[Chunk]:
    """The pieces of a memory's content in order."""
    found = connection.execute('SELECT start, "end" FROM chunks WHERE memory_id = ? AND question IS NULL ORDER BY start', (memory_id,))
    return [Chunk(start, end) for start, end in found]


def of_memories(connection: apsw.Connection, memory_ids: Iterable[int]) -> dict[int, int]:
    """The chunks of these memories, each with its memory."""
    sql = "SELECT id, memory_id FROM chunks WHERE memory_id IN (SELECT value FROM json_each(?)) ORDER BY id"
    return dict(packed(connection, "id, memory_id", sql, (json.dumps(list(memory_ids)),)))
