"""The pieces of each memory that get a vector: places in its content, and the questions that it answers.

They are made when it is written. Of a long memory a generation may have pieces of its own, by its model's tokens: those then stand in
the place of the written ones in that generation, and only there.
"""

import json
from collections.abc import Iterable, Sequence

import apsw

from memory_mcp.domain import Chunk, Filters
from memory_mcp.store.memories import where
from memory_mcp.store.sqlite.bulk_rows import packed
from memory_mcp.store.vectors.stored_vectors import SEARCHABLE


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
    """The pieces of a memory's content in order, as it was written."""
    return [Chunk(start, end) for _, start, end in _pieces(connection, memory_id, None)]


def in_generation(connection: apsw.Connection, memory_id: int, generation: str) -> list[Chunk]:
    """The pieces of a memory's content that get vectors in a generation, in order."""
    own = _pieces(connection, memory_id, generation)
    return [Chunk(start, end) for _, start, end in own] if own else of_memory(connection, memory_id)


def resplit(connection: apsw.Connection, memory_id: int, generation: str, wanted: Sequence[Chunk]) -> list[int]:
    """Gives a memory these pieces in one generation. Those that it has stay, with their vectors.

    Returns the chunks that have lost their vector in that generation, or are gone.
    """
    own = {Chunk(start, end): chunk for chunk, start, end in _pieces(connection, memory_id, generation)}
    written = {Chunk(start, end): chunk for chunk, start, end in _pieces(connection, memory_id, None)}
    if list(written) == list(wanted):
        wanted = ()  # what was written does for this model too
    lost = [chunk for piece, chunk in own.items() if piece not in wanted]
    for piece in wanted:
        if piece not in own:
            connection.execute(
                'INSERT INTO chunks(memory_id, start, "end", generation) VALUES (?, ?, ?, ?)',
                (memory_id, piece.start, piece.end, generation),
            )
            if piece in written:  # the same text: its vector goes over
                values = (connection.last_insert_rowid(), generation, written[piece])
                connection.execute("UPDATE vectors SET chunk = ? WHERE generation = ? AND chunk = ?", values)
    connection.executemany("DELETE FROM chunks WHERE id = ?", [(chunk,) for chunk in lost])
    if wanted:
        gone = "DELETE FROM vectors WHERE generation = ? AND chunk IN (SELECT value FROM json_each(?)) RETURNING chunk"
        lost += [row[0] for row in connection.execute(gone, (generation, json.dumps(list(written.values()))))]
    return lost


def drop_generation(connection: apsw.Connection, generation: str) -> None:
    """Takes the pieces away that memories have in this generation only, with their vectors."""
    connection.execute("DELETE FROM chunks WHERE generation = ?", (generation,))


def of_memories(connection: apsw.Connection, memory_ids: Iterable[int]) -> dict[int, int]:
    """The chunks of these memories, each with its memory."""
    sql = "SELECT id, memory_id FROM chunks WHERE memory_id IN (SELECT value FROM json_each(?)) ORDER BY id"
    return dict(packed(connection, "id, memory_id", sql, (json.dumps(list(memory_ids)),)))


def _pieces(connection: apsw.Connection, memory_id: int, generation: str | None) -> list[tuple[int, int, int]]:
    """(chunk, start, end) of a memory's pieces, in order: those of one generation only, or as they were written."""
    return list(
        connection.execute(
            'SELECT id, start, "end" FROM chunks WHERE memory_id = ? AND question IS NULL AND generation IS ? ORDER BY start',
            (memory_id, generation),
        )
    )


def owners(connection: apsw.Connection, chunks: Sequence[int]) -> dict[int, int]:
    """Chunk → memory, for the chunks of current memories. An index may be a moment ahead of, or behind, what a reader sees."""
    sql = (
        f"SELECT c.id AS chunk, c.memory_id AS owner FROM chunks c JOIN memories m ON m.id = c.memory_id "
        f"WHERE c.id IN (SELECT value FROM json_each(?)) AND {SEARCHABLE}"
    )
    return dict(packed(connection, "chunk, owner", sql, (json.dumps(list(chunks)),)))


def passing_filters(connection: apsw.Connection, filters: Filters) -> list[int]:
    """The chunks of the memories that pass the filters."""
    condition, values = where(filters)
    sql = f"SELECT c.id AS chunk FROM memories m JOIN chunks c ON c.memory_id = m.id WHERE m.deleted_at IS NULL {condition}"
    return [chunk for (chunk,) in packed(connection, "chunk", sql, values)]


def pieces_and_questions(connection: apsw.Connection, memory_ids: Iterable[int]) -> dict[int, tuple[int, bool]]:
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
