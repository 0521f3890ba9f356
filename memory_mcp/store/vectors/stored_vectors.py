"""The table of vectors, and which generation serves searches. Indexes are built from these rows, never the other way round."""

import itertools
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo

import apsw
import numpy as np
import numpy.typing as npt

from memory_mcp.domain import Chunk, Embedded
from memory_mcp.store import properties
from memory_mcp.store.memories import CURRENT, EVENT_TIME
from memory_mcp.store.sqlite.reading import json_ids
from memory_mcp.store.timestamps import from_text
from memory_mcp.store.vectors import index_queue

Ids = npt.NDArray[np.int64]
Matrix = npt.NDArray[np.float32]

PAGE = 4_096
COUNTED_EXACTLY = 200
BLOB_TYPE = np.dtype("<f4")

_SERVING = "serving_generation"
_CHANGE = "index_change"
# The condition CURRENT, after a check for the usual case: almost no memory was ever replaced. Half the time on 100,000 rows.
# Summaries are left out, because they repeat their sources, which are searchable.
SEARCHABLE = (
    f"m.deleted_at IS NULL AND m.kind <> 'summary' AND (NOT EXISTS (SELECT 1 FROM memories r WHERE r.supersedes = m.key) OR ({CURRENT}))"
)
_INDEXED = f"FROM vectors v JOIN chunks c ON c.id = v.chunk JOIN memories m ON m.id = c.memory_id WHERE v.generation = ? AND {SEARCHABLE}"
# The chunks of a memory without a vector in the generation ?1. Chunks of that generation only replace the written ones.
_UNEMBEDDED = (
    "(NOT EXISTS (SELECT 1 FROM vectors v WHERE v.generation = ?1 AND v.chunk = c.id) AND coalesce(c.generation = ?1, "
    "c.question IS NOT NULL OR NOT EXISTS (SELECT 1 FROM chunks o WHERE o.generation = ?1 AND o.memory_id = c.memory_id)))"
)


@dataclass(frozen=True, slots=True)
class Unembedded:
    """A chunk without a vector, and the text to embed."""

    chunk: int
    memory_id: int
    text: str


def serving_generation(connection: apsw.Connection) -> str | None:
    """The generation that recall uses for this persona; None before the first model."""
    return properties.value(connection, _SERVING)


def set_serving_generation(connection: apsw.Connection, generation: str) -> None:
    """Let recall use this generation from the commit on."""
    properties.put(connection, _SERVING, generation)


def change_number(connection: apsw.Connection) -> int:
    """The number of changes to the indexed vectors. A saved index with the same number is up to date."""
    return int(properties.value(connection, _CHANGE) or 0)


def note_change(connection: apsw.Connection) -> int:
    """Count a change, in its transaction; return its number."""
    number = change_number(connection) + 1
    properties.put(connection, _CHANGE, str(number))
    return number


def write(connection: apsw.Connection, generation: str, ids: Sequence[int], vectors: Matrix) -> None:
    """Store a vector for each of these chunks, except those that were replaced meanwhile."""
    rows = [(generation, vector.astype(BLOB_TYPE).tobytes(), chunk) for chunk, vector in zip(ids, vectors, strict=True)]
    connection.executemany("INSERT OR REPLACE INTO vectors(generation, blob, chunk) SELECT ?, ?, id FROM chunks WHERE id = ?", rows)


def store_embedded(connection: apsw.Connection, memory_id: int, embedded: Embedded) -> None:
    """Store the vectors that a new memory brought with it."""
    made = connection.execute(
        'SELECT id, start, "end", question FROM chunks WHERE memory_id = ? AND (generation IS NULL OR generation = ?) ORDER BY generation IS NOT NULL',
        (memory_id, embedded.generation),
    )
    ids = {(start, end) if question is None else question: chunk for chunk, start, end, question in made}
    pieces = [*((chunk.start, chunk.end) for chunk in embedded.chunks), *embedded.questions]
    matrix = np.frombuffer(embedded.vectors, BLOB_TYPE).reshape(len(pieces), embedded.dimension)
    known = [(ids[piece], row) for row, piece in enumerate(pieces) if piece in ids]
    write(connection, embedded.generation, [chunk for chunk, _ in known], matrix[[row for _, row in known]])


def embedded_of(connection: apsw.Connection, generation: str, memory_ids: Collection[int]) -> dict[int, Embedded]:
    """Memory → its chunks with their vectors, for those of these memories that lack no vector."""
    rows = connection.execute(
        'SELECT c.memory_id, c.start, c."end", c.question, v.blob FROM chunks c LEFT JOIN vectors v ON v.generation = ?1 AND v.chunk = c.id '
        "WHERE c.memory_id IN (SELECT value FROM json_each(?2)) AND (c.question IS NOT NULL OR c.generation = ?1 OR (c.generation IS NULL "
        "AND NOT EXISTS (SELECT 1 FROM chunks o WHERE o.memory_id = c.memory_id AND o.generation = ?1))) "
        "ORDER BY c.memory_id, c.question IS NOT NULL, c.start, c.id",
        (generation, json_ids(memory_ids)),
    )
    embedded: dict[int, Embedded] = {}
    for memory_id, group in itertools.groupby(rows, key=lambda row: int(row[0])):
        pieces = [row[1:] for row in group]
        blobs = [blob for *_, blob in pieces]
        if None in blobs:
            continue
        embedded[memory_id] = Embedded(
            generation,
            len(blobs[0]) // BLOB_TYPE.itemsize,
            tuple(Chunk(start, end) for start, end, question, _ in pieces if question is None),
            tuple(question for _, _, question, _ in pieces if question is not None),
            b"".join(blob for *_, blob in pieces),
        )
    return embedded


def unembedded(
    connection: apsw.Connection, generation: str, limit: int, zone: ZoneInfo, *, after: int = 0, of: Collection[int] | None = None
) -> list[Unembedded]:
    """Searchable chunks without a vector in a generation, by id: greater than `after`, or of the memories `of`.

    A span of content is embedded as "[its day in `zone`] source: span"; a question as it is, without a day or source.
    """
    chosen = "c.memory_id IN (SELECT value FROM json_each(?2))" if of is not None else "c.id > ?2"
    rows = connection.execute(
        f'SELECT c.id, c.start, c."end", c.question, m.id, m.content, m.source, {EVENT_TIME} '
        f"FROM chunks c JOIN memories m ON m.id = c.memory_id WHERE {chosen} AND {_UNEMBEDDED} AND {SEARCHABLE} ORDER BY c.id LIMIT ?3",
        (generation, after if of is None else json_ids(of), limit),
    )
    return [
        Unembedded(chunk, memory_id, question or embedded_text(content[start:end], source, event_time, zone))
        for chunk, start, end, question, memory_id, content, source, event_time in rows
    ]


def lag(connection: apsw.Connection, generation: str) -> int:
    """How many searchable memories lack a vector in a generation. Reads every memory; `waiting` is cheap, for the serving one."""
    return int(connection.execute(f"SELECT count(*) FROM memories m WHERE {_lacking()}", (generation,)).get)


def chunks_lacking(connection: apsw.Connection, generation: str) -> int:
    """How many searchable chunks have no vector in a generation. Reads every one."""
    lacking = f"SELECT count(*) FROM chunks c JOIN memories m ON m.id = c.memory_id WHERE {_UNEMBEDDED} AND {SEARCHABLE}"
    return int(connection.execute(lacking, (generation,)).get)


def waiting(connection: apsw.Connection, generation: str) -> int:
    """How many searchable memories lack a vector in the serving generation, by the queue. Cheap enough for every answer; every entry of
    a long queue is counted, whether or not it lacks a vector."""
    length = index_queue.length(connection)
    if length == 0 or length > COUNTED_EXACTLY:
        return length
    return len(lacking_among(connection, generation, index_queue.oldest(connection, length)))


def lacking_among(connection: apsw.Connection, generation: str, memory_ids: Collection[int]) -> set[int]:
    """Those of these memories that are searchable and lack a vector in a generation."""
    rows = connection.execute(
        f"SELECT m.id FROM memories m WHERE m.id IN (SELECT value FROM json_each(?2)) AND {_lacking()}",
        (generation, json_ids(memory_ids)),
    )
    return {row[0] for row in rows}


def enqueue_lacking(connection: apsw.Connection, generation: str) -> None:
    """Queue every memory that lacks a vector in a generation, unless it is queued."""
    connection.execute(
        f"INSERT OR IGNORE INTO index_queue(memory_id) SELECT m.id FROM memories m WHERE {_lacking()} ORDER BY m.id", (generation,)
    )


def lacking_beyond_queue(connection: apsw.Connection, generation: str) -> bool:
    """Whether a memory lacks a vector in a generation and isn't queued."""
    lacking = connection.execute(
        f"SELECT 1 FROM memories m WHERE m.id NOT IN (SELECT memory_id FROM index_queue) AND {_lacking()} LIMIT 1", (generation,)
    )
    return lacking.get is not None


def ids(connection: apsw.Connection, generation: str) -> Ids:
    """The chunks that an index of a generation contains, in order."""
    return np.array([row[0] for row in connection.execute(f"SELECT v.chunk {_INDEXED} ORDER BY v.chunk", (generation,))], np.int64)


def of_memories(connection: apsw.Connection, generation: str, memory_ids: Collection[int]) -> tuple[Ids, Matrix]:
    """The chunks and vectors of these memories in an index of a generation."""
    rows = connection.execute(
        # CROSS JOIN fixes the join order, or SQLite would scan the whole generation.
        "SELECT v.chunk, v.blob FROM memories m CROSS JOIN chunks c ON c.memory_id = m.id CROSS JOIN vectors v ON v.chunk = c.id "
        f"WHERE m.id IN (SELECT value FROM json_each(?)) AND v.generation = ? AND {SEARCHABLE} ORDER BY v.chunk",
        (json_ids(memory_ids), generation),
    )
    return stacked(list(rows))


def of_chunks(connection: apsw.Connection, generation: str, chunks: Collection[int]) -> tuple[Ids, Matrix]:
    """The vectors of these chunks, ordered by id."""
    rows = connection.execute(
        "SELECT chunk, blob FROM vectors WHERE generation = ? AND chunk IN (SELECT value FROM json_each(?)) ORDER BY chunk",
        (generation, json_ids(int(chunk) for chunk in chunks)),
    )
    return stacked(list(rows))


def single_vectors(connection: apsw.Connection, generation: str, memory_ids: Sequence[int]) -> tuple[Ids, Matrix]:
    """The vectors of those of these memories that have a single chunk: (memory ids, one row each)."""
    rows = connection.execute(
        "SELECT c.memory_id, v.blob FROM chunks c CROSS JOIN vectors v ON v.chunk = c.id AND v.generation = ? "
        "WHERE c.memory_id IN (SELECT value FROM json_each(?)) AND c.question IS NULL GROUP BY c.memory_id HAVING count(*) = 1",
        (generation, json_ids(memory_ids)),
    )
    return stacked(list(rows))


def pages(connection: apsw.Connection, generation: str) -> Iterator[tuple[Ids, Matrix]]:
    """The chunks and vectors of an index of a generation, in pages."""
    rows = connection.execute(f"SELECT v.chunk, v.blob {_INDEXED} ORDER BY v.chunk", (generation,))
    while page := list(itertools.islice(rows, PAGE)):
        yield stacked(page)


def counts(connection: apsw.Connection) -> Mapping[str, int]:
    """The number of vectors of each generation, including those of memories in the trash."""
    return dict(connection.execute("SELECT generation, count(*) FROM vectors GROUP BY generation ORDER BY generation"))


def generations(connection: apsw.Connection) -> set[str]:
    """The generations that have vectors or chunks of their own."""
    own = connection.execute("SELECT DISTINCT generation FROM chunks WHERE generation IS NOT NULL")
    return {*counts(connection), *(row[0] for row in own)}


def has_any(connection: apsw.Connection, generation: str) -> bool:
    """Whether a generation has any vector."""
    return connection.execute("SELECT 1 FROM vectors WHERE generation = ? LIMIT 1", (generation,)).get is not None


def drop_other_generations(connection: apsw.Connection, keep: Collection[str], limit: int) -> int:
    """Delete up to `limit` chunks and vectors of generations not in `keep`. Returns how many; fewer than `limit` means that none is
    left.
    """
    connection.execute(
        "DELETE FROM chunks WHERE id IN (SELECT id FROM chunks WHERE generation IS NOT NULL "
        "AND generation NOT IN (SELECT value FROM json_each(?)) LIMIT ?)",
        (json.dumps(list(keep)), limit),
    )
    pieces: int = connection.changes()
    limit -= pieces
    connection.execute(
        "DELETE FROM vectors WHERE rowid IN (SELECT rowid FROM vectors WHERE generation IN ("
        "SELECT generation FROM vectors GROUP BY generation HAVING generation NOT IN (SELECT value FROM json_each(?))) LIMIT ?)",
        (json.dumps(list(keep)), limit),
    )
    return pieces + connection.changes()


def dropped_chunks(connection: apsw.Connection) -> list[int]:
    """Deleted chunks that an open index may still contain."""
    return [row[0] for row in connection.execute("SELECT chunk FROM dropped_chunks ORDER BY chunk")]


def forget_dropped(connection: apsw.Connection, chunks: Sequence[int]) -> None:
    """Record that no open index contains these chunks."""
    connection.executemany("DELETE FROM dropped_chunks WHERE chunk = ?", [(chunk,) for chunk in chunks])


def _lacking() -> str:
    """An SQL condition on `memories m`: it lacks a vector in the generation ?1."""
    return f"EXISTS (SELECT 1 FROM chunks c WHERE c.memory_id = m.id AND {_UNEMBEDDED}) AND {SEARCHABLE}"


def embedded_text(piece: str, source: str | None, event_time: str, zone: ZoneInfo) -> str:
    """The text that a span of a memory is embedded as: its day, its source, and the span."""
    day = f"[{from_text(event_time).astimezone(zone):%Y-%m-%d}]"
    return f"{day} {source}: {piece}" if source else f"{day} {piece}"


def stacked(rows: Sequence[Any]) -> tuple[Ids, Matrix]:
    """Rows of an id and a blob as arrays of shape (n,) and (n, dimension)."""
    if not rows:
        return np.empty(0, np.int64), np.empty((0, 0), np.float32)
    blobs = np.frombuffer(b"".join(blob for _, blob in rows), BLOB_TYPE)
    return np.array([chunk for chunk, _ in rows], np.int64), blobs.astype(np.float32).reshape(len(rows), -1)
