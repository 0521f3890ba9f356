"""The chunks of each memory, each of which gets a vector: spans of its content, and the questions that it answers.

Chunks are made when the memory is written. A generation (one embedding model) may split a long memory differently, by its model's
tokens; within that generation these chunks replace the written ones.
"""

import json
from collections.abc import Iterable, Sequence

import apsw

from memory_mcp.domain import Chunk, Filters
from memory_mcp.store.memories import where
from memory_mcp.store.sqlite.reading import bulk_rows, json_ids
from memory_mcp.store.vectors.stored_vectors import SEARCHABLE


def replace(connection: apsw.Connection, memory_id: int, chunks: Sequence[Chunk], questions: Sequence[str] = ()) -> None:
    """Replace the chunks of a memory by these and one per question. The vectors of the old chunks are deleted."""
    drop(connection, memory_id)
    add(connection, memory_id, chunks, questions)


def add(connection: apsw.Connection, memory_id: int, chunks: Sequence[Chunk], questions: Sequence[str]) -> None:
    """Add the chunks of a new memory, and one per question."""
    connection.executemany(
        'INSERT INTO chunks(memory_id, start, "end", question) VALUES (?, ?, ?, ?)',
        [
            *((memory_id, chunk.start, chunk.end, None) for chunk in chunks),
            *((memory_id, 0, 0, question) for question in dict.fromkeys(questions)),
        ],
    )


def drop(connection: apsw.Connection, memory_id: int) -> None:
    """Delete the chunks of a memory with their vectors, and record them as dropped, so that open indexes remove them too."""
    connection.execute(
        "INSERT OR IGNORE INTO dropped_chunks SELECT v.chunk FROM vectors v JOIN chunks c ON c.id = v.chunk WHERE c.memory_id = ?",
        (memory_id,),
    )
    connection.execute("DELETE FROM chunks WHERE memory_id = ?", (memory_id,))


def of_memory(connection: apsw.Connection, memory_id: int) -> list[Chunk]:
    """The spans of a memory's content in order, as made when it was written."""
    return [Chunk(start, end) for _, start, end in _pieces(connection, memory_id, None)]


def in_generation(connection: apsw.Connection, memory_id: int, generation: str) -> list[Chunk]:
    """The spans of a memory's content that get vectors in a generation, in order."""
    own = _pieces(connection, memory_id, generation)
    return [Chunk(start, end) for _, start, end in own] if own else of_memory(connection, memory_id)


def resplit(connection: apsw.Connection, memory_id: int, generation: str, wanted: Sequence[Chunk]) -> list[int]:
    """Split a memory into the `wanted` spans in one generation. Chunks that exist already keep their vectors.

    Returns the chunks that were deleted or lost their vector in that generation.
    """
    own = {Chunk(start, end): chunk for chunk, start, end in _pieces(connection, memory_id, generation)}
    written = {Chunk(start, end): chunk for chunk, start, end in _pieces(connection, memory_id, None)}
    if list(written) == list(wanted):
        wanted = ()  # the written chunks suit this model too
    lost = [chunk for piece, chunk in own.items() if piece not in wanted]
    for piece in wanted:
        if piece not in own:
            connection.execute(
                'INSERT INTO chunks(memory_id, start, "end", generation) VALUES (?, ?, ?, ?)',
                (memory_id, piece.start, piece.end, generation),
            )
            if piece in written:  # the same text: reuse its vector
                values = (connection.last_insert_rowid(), generation, written[piece])
                connection.execute("UPDATE vectors SET chunk = ? WHERE generation = ? AND chunk = ?", values)
    connection.executemany("DELETE FROM chunks WHERE id = ?", [(chunk,) for chunk in lost])
    if wanted:
        gone = "DELETE FROM vectors WHERE generation = ? AND chunk IN (SELECT value FROM json_each(?)) RETURNING chunk"
        lost += [row[0] for row in connection.execute(gone, (generation, json.dumps(list(written.values()))))]
    return lost


def drop_generation(connection: apsw.Connection, generation: str) -> None:
    """Delete the chunks that belong to this generation only, with their vectors."""
    connection.execute("DELETE FROM chunks WHERE generation = ?", (generation,))


def of_memories(connection: apsw.Connection, memory_ids: Iterable[int]) -> dict[int, int]:
    """Chunk → memory, for all chunks of these memories."""
    sql = "SELECT id, memory_id FROM chunks WHERE memory_id IN (SELECT value FROM json_each(?)) ORDER BY id"
    return dict(bulk_rows(connection, "id, memory_id", sql, (json_ids(memory_ids),)))


def _pieces(connection: apsw.Connection, memory_id: int, generation: str | None) -> list[tuple[int, int, int]]:
    """(chunk, start, end) of a memory's spans, in order: those of one generation only, or the written ones."""
    return list(
        connection.execute(
            'SELECT id, start, "end" FROM chunks WHERE memory_id = ? AND question IS NULL AND generation IS ? ORDER BY start',
            (memory_id, generation),
        )
    )


def owners(connection: apsw.Connection, chunks: Sequence[int]) -> dict[int, int]:
    """Chunk → memory, for those of these chunks with a searchable memory. An index may be a moment ahead of the snapshot, or behind."""
    sql = (
        f"SELECT c.id AS chunk, c.memory_id AS owner FROM chunks c JOIN memories m ON m.id = c.memory_id "
        f"WHERE c.id IN (SELECT value FROM json_each(?)) AND {SEARCHABLE}"
    )
    return dict(bulk_rows(connection, "chunk, owner", sql, (json_ids(chunks),)))


def passing_filters(connection: apsw.Connection, filters: Filters) -> list[int]:
    """The chunks of the memories that match the filters."""
    condition, values = where(filters)
    sql = f"SELECT c.id AS chunk FROM memories m JOIN chunks c ON c.memory_id = m.id WHERE m.deleted_at IS NULL {condition}"
    return [chunk for (chunk,) in bulk_rows(connection, "chunk", sql, values)]


def pieces_and_questions(connection: apsw.Connection, memory_ids: Iterable[int]) -> dict[int, tuple[int, bool]]:
    """Chunk → (memory, whether the chunk is a question that the memory answers), for all chunks of these memories."""
    sql = "SELECT id, memory_id, question IS NOT NULL AS is_question FROM chunks WHERE memory_id IN (SELECT value FROM json_each(?)) ORDER BY id"
    rows = bulk_rows(connection, "id, memory_id, is_question", sql, (json_ids(memory_ids),))
    return {chunk: (memory_id, bool(is_question)) for chunk, memory_id, is_question in rows}


def spans(connection: apsw.Connection, chunks: Sequence[int]) -> dict[int, tuple[int, int]]:
    """Chunk → its span in the content. Questions have none."""
    if not chunks:
        return {}
    sql = 'SELECT id, start, "end" FROM chunks WHERE question IS NULL AND id IN (SELECT value FROM json_each(?))'
    rows = bulk_rows(connection, 'id, start, "end"', sql, (json_ids(chunks),))
    return {chunk: (start, end) for chunk, start, end in rows}
