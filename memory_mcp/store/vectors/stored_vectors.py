"""The vectors as SQLite has them, and which generation of them answers. An index is made from these rows and never the other way round."""

import itertools
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from zoneinfo import ZoneInfo

import apsw
import numpy as np
import numpy.typing as npt

from memory_mcp.domain import Chunk, Embedded
from memory_mcp.store.memories import CURRENT, EVENT_TIME
from memory_mcp.store.timestamps import from_text
from memory_mcp.store.vectors import index_queue

Ids = npt.NDArray[np.int64]
Matrix = npt.NDArray[np.float32]

PAGE = 4_096
COUNTED_EXACTLY = 200
BLOB_TYPE = np.dtype("<f4")

_SERVING = "serving_generation"
_CHANGE = "index_change"
# What CURRENT says, with a look at the usual case first: nearly no memory was ever replaced. Half the time on 100,000 rows.
# A summary says again what its sources say, and those are found.
SEARCHABLE = (
    f"m.deleted_at IS NULL AND m.kind <> 'summary' AND (NOT EXISTS (SELECT 1 FROM memories r WHERE r.supersedes = m.key) OR ({CURRENT}))"
)
_INDEXED = f"FROM vectors v JOIN chunks c ON c.id = v.chunk JOIN memories m ON m.id = c.memory_id WHERE v.generation = ? AND {SEARCHABLE}"
# Of the chunks of a memory in a generation, ?1, those without a vector. Pieces of that generation alone stand for the written ones.
_UNEMBEDDED = (
    "(NOT EXISTS (SELECT 1 FROM vectors v WHERE v.generation = ?1 AND v.chunk = c.id) AND coalesce(c.generation = ?1, "
    "c.question IS NOT NULL OR NOT EXISTS (SELECT 1 FROM chunks o WHERE o.generation = ?1 AND o.memory_id = c.memory_id)))"
)


@dataclass(frozen=True, slots=True)
class Unembedded:
    """A chunk that wants a vector, and the text to make it from."""

    chunk: int
    memory_id: int
    text: str


def serving_generation(connection: apsw.Connection) -> str | None:
    """The generation that recall may use for this persona; None before the first model."""
    found: str | None = connection.execute("SELECT value FROM properties WHERE name = ?", (_SERVING,)).get
    return found


def set_serving_generation(connection: apsw.Connection, generation: str) -> None:
    """Lets recall use this generation from the commit on."""
    connection.execute("INSERT OR REPLACE INTO properties VALUES (?, ?)", (_SERVING, generation))


def change_number(connection: apsw.Connection) -> int:
    """How many changes the indexed set has seen. A saved index with the same number lacks none of them."""
    return int(connection.execute("SELECT value FROM properties WHERE name = ?", (_CHANGE,)).get or 0)


def note_change(connection: apsw.Connection) -> int:
    """Counts a change, in the transaction that makes it. Returns its number."""
    number = change_number(connection) + 1
    connection.execute("INSERT OR REPLACE INTO properties VALUES (?, ?)", (_CHANGE, str(number)))
    return number


def write(connection: apsw.Connection, generation: str, ids: Sequence[int], vectors: Matrix) -> None:
    """Stores a vector for each of these chunks, except those that were replaced meanwhile."""
    rows = [(generation, vector.astype(BLOB_TYPE).tobytes(), chunk) for chunk, vector in zip(ids, vectors, strict=True)]
    connection.executemany("INSERT OR REPLACE INTO vectors(generation, blob, chunk) SELECT ?, ?, id FROM chunks WHERE id = ?", rows)


def take_over(connection: apsw.Connection, memory_id: int, embedded: Embedded) -> None:
    """Gives the chunks of a memory that was just stored the vectors that it came with."""
    made = connection.execute(
        'SELECT id, start, "end", question FROM chunks WHERE memory_id = ? AND (generation IS NULL OR generation = ?) ORDER BY generation IS NOT NULL',
        (memory_id, embedded.generation),
    )
    ids = {(start, end) if question is None else question: chunk for chunk, start, end, question in made}
    pieces = [*((chunk.start, chunk.end) for chunk in embedded.chunks), *embedded.questions]
    matrix = np.frombuffer(embedded.vectors, BLOB_TYPE).reshape(len(pieces), embedded.dimension)
    known = [(ids[piece], place) for place, piece in enumerate(pieces) if piece in ids]
    write(connection, embedded.generation, [chunk for chunk, _ in known], matrix[[place for _, place in known]])


def embedded_of(connection: apsw.Connection, generation: str, memory_ids: Collection[int]) -> dict[int, Embedded]:
    """The pieces of these memories with their vectors, by memory; only of those that lack none."""
    rows = connection.execute(
        'SELECT c.memory_id, c.start, c."end", c.question, v.blob FROM chunks c LEFT JOIN vectors v ON v.generation = ?1 AND v.chunk = c.id '
        "WHERE c.memory_id IN (SELECT value FROM json_each(?2)) AND (c.question IS NOT NULL OR c.generation = ?1 OR (c.generation IS NULL "
        "AND NOT EXISTS (SELECT 1 FROM chunks o WHERE o.memory_id = c.memory_id AND o.generation = ?1))) "
        "ORDER BY c.memory_id, c.question IS NOT NULL, c.start, c.id",
        (generation, json.dumps(list(memory_ids))),
    )
    found: dict[int, Embedded] = {}
    for memory_id, group in itertools.groupby(rows, key=lambda row: int(row[0])):
        pieces = [row[1:] for row in group]
        blobs = [blob for *_, blob in pieces]
        if None in blobs:
            continue
        found[memory_id] = Embedded(
            generation,
            len(blobs[0]) // BLOB_TYPE.itemsize,
            tuple(Chunk(start, end) for start, end, question, _ in pieces if question is None),
            tuple(question for _, _, question, _ in pieces if question is not None),
            b"".join(blob for *_, blob in pieces),
        )
    return found


def unembedded(
    connection: apsw.Connection, generation: str, limit: int, zone: ZoneInfo, *, after: int = 0, of: Collection[int] | None = None
) -> list[Unembedded]:
    """Chunks of current memories that have no vector in a generation, by their ids: beyond `after`, or of the memories `of`.

    A piece of content is embedded as "[its day in `zone`] who said it: piece", a question as it is: nobody said it, on no day.
    """
    chosen = "c.memory_id IN (SELECT value FROM json_each(?2))" if of is not None else "c.id > ?2"
    found = connection.execute(
        f'SELECT c.id, c.start, c."end", c.question, m.id, m.content, m.source, {EVENT_TIME} '
        f"FROM chunks c JOIN memories m ON m.id = c.memory_id WHERE {chosen} AND {_UNEMBEDDED} AND {SEARCHABLE} ORDER BY c.id LIMIT ?3",
        (generation, after if of is None else json.dumps(list(of)), limit),
    )
    return [
        Unembedded(chunk, memory_id, question or said(content[start:end], source, event_time, zone))
        for chunk, start, end, question, memory_id, content, source, event_time in found
    ]


def lag(connection: apsw.Connection, generation: str) -> int:
    """How many current memories lack a vector in a generation. Looks at every memory: see `waiting` for the serving one."""
    lacking: int = connection.execute(f"SELECT count(*) FROM memories m WHERE {_lacking()}", (generation,)).get
    return lacking


def chunks_lacking(connection: apsw.Connection, generation: str) -> int:
    """How many chunks of current memories have no vector in a generation. Looks at every one."""
    lacking: int = connection.execute(
        f"SELECT count(*) FROM chunks c JOIN memories m ON m.id = c.memory_id WHERE {_UNEMBEDDED} AND {SEARCHABLE}", (generation,)
    ).get
    return lacking


def waiting(connection: apsw.Connection, generation: str) -> int:
    """How many current memories lack a vector in the serving generation: those on the to-do list. Cheap enough for every answer;
    of a long list each is counted, whatever it waits for."""
    length = index_queue.length(connection)
    if length == 0 or length > COUNTED_EXACTLY:
        return length
    return len(lacking_among(connection, generation, index_queue.oldest(connection, length)))


def lacking_among(connection: apsw.Connection, generation: str, memory_ids: Collection[int]) -> set[int]:
    """Which of these memories are current and lack a vector in a generation."""
    found = connection.execute(
        f"SELECT m.id FROM memories m WHERE m.id IN (SELECT value FROM json_each(?2)) AND {_lacking()}",
        (generation, json.dumps(list(memory_ids))),
    )
    return {row[0] for row in found}


def enqueue_lacking(connection: apsw.Connection, generation: str) -> None:
    """Puts every memory that lacks a vector in a generation on the to-do list, unless it is there."""
    connection.execute(
        f"INSERT OR IGNORE INTO index_queue(memory_id) SELECT m.id FROM memories m WHERE {_lacking()} ORDER BY m.id", (generation,)
    )


def lacking_beyond_queue(connection: apsw.Connection, generation: str) -> bool:
    """Whether a memory lacks a vector in a generation and is not on the to-do list."""
    found = connection.execute(
        f"SELECT 1 FROM memories m WHERE m.id NOT IN (SELECT memory_id FROM index_queue) AND {_lacking()} LIMIT 1", (generation,)
    )
    return found.get is not None


def ids(connection: apsw.Connection, generation: str) -> Ids:
    """The chunks that an index of a generation holds, in order."""
    return np.array([row[0] for row in connection.execute(f"SELECT v.chunk {_INDEXED} ORDER BY v.chunk", (generation,))], np.int64)


def of_memories(connection: apsw.Connection, generation: str, memory_ids: Collection[int]) -> tuple[Ids, Matrix]:
    """What an index of a generation holds of these memories."""
    rows = connection.execute(
        # CROSS JOIN: from the memories to their vectors. SQLite would walk through the whole generation.
        "SELECT v.chunk, v.blob FROM memories m CROSS JOIN chunks c ON c.memory_id = m.id CROSS JOIN vectors v ON v.chunk = c.id "
        f"WHERE m.id IN (SELECT value FROM json_each(?)) AND v.generation = ? AND {SEARCHABLE} ORDER BY v.chunk",
        (json.dumps(list(memory_ids)), generation),
    )
    return _stacked(list(rows))


def of_chunks(connection: apsw.Connection, generation: str, chunks: Collection[int]) -> tuple[Ids, Matrix]:
    """The vectors of these chunks, by their ids."""
    rows = connection.execute(
        "SELECT chunk, blob FROM vectors WHERE generation = ? AND chunk IN (SELECT value FROM json_each(?)) ORDER BY chunk",
        (generation, json.dumps([int(chunk) for chunk in chunks])),
    )
    return _stacked(list(rows))


def pages(connection: apsw.Connection, generation: str) -> Iterator[tuple[Ids, Matrix]]:
    """Everything that an index of a generation holds, page by page."""
    rows = connection.execute(f"SELECT v.chunk, v.blob {_INDEXED} ORDER BY v.chunk", (generation,))
    while page := list(itertools.islice(rows, PAGE)):
        yield _stacked(page)


def counts(connection: apsw.Connection) -> Mapping[str, int]:
    """How many vectors each generation has, those of memories in the trash included."""
    return dict(connection.execute("SELECT generation, count(*) FROM vectors GROUP BY generation ORDER BY generation"))


def generations(connection: apsw.Connection) -> set[str]:
    """The generations that have vectors, or pieces of their own."""
    own = connection.execute("SELECT DISTINCT generation FROM chunks WHERE generation IS NOT NULL")
    return {*counts(connection), *(row[0] for row in own)}


def has_any(connection: apsw.Connection, generation: str) -> bool:
    """Whether a generation has a vector at all."""
    return connection.execute("SELECT 1 FROM vectors WHERE generation = ? LIMIT 1", (generation,)).get is not None


def drop_other_generations(connection: apsw.Connection, keep: Collection[str], limit: int) -> int:
    """Deletes up to `limit` pieces and vectors of generations that nobody needs. Returns how many; less than `limit`: none is left."""
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
    """Chunks that are gone and may still stand in an open index."""
    return [row[0] for row in connection.execute("SELECT chunk FROM dropped_chunks ORDER BY chunk")]


def forget_dropped(connection: apsw.Connection, chunks: Sequence[int]) -> None:
    """Notes that no open index holds these any more."""
    connection.executemany("DELETE FROM dropped_chunks WHERE chunk = ?", [(chunk,) for chunk in chunks])


def _lacking() -> str:
    """The condition on `memories m`, with the generation as its value ?1."""
    return f"EXISTS (SELECT 1 FROM chunks c WHERE c.memory_id = m.id AND {_UNEMBEDDED}) AND {SEARCHABLE}"


def said(piece: str, source: str | None, event_time: str, zone: ZoneInfo) -> str:
    """The text that a piece of a memory is embedded as: its day, who said it, and what."""
    day = f"[{from_text(event_time).astimezone(zone):%Y-%m-%d}]"
    return f"{day} {source}: {piece}" if source else f"{day} {piece}"


def _stacked(rows: Sequence[tuple[int, bytes]]) -> tuple[Ids, Matrix]:
    if not rows:
        return np.empty(0, np.int64), np.empty((0, 0), np.float32)
    blobs = np.frombuffer(b"".join(blob for _, blob in rows), BLOB_TYPE)
    return np.array([chunk for chunk, _ in rows], np.int64), blobs.astype(np.float32).reshape(len(rows), -1)
