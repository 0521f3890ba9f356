"""A vector for each entity and generation, of its names, its description and the memories that mention it.

Stored in the persona's database: deleted with the entity, and computed again when one of the memories is erased.
"""

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import apsw
import numpy as np

from memory_mcp.store.graph.visibility import PRESENT
from memory_mcp.store.sqlite.reading import json_ids
from memory_mcp.store.vectors.stored_vectors import BLOB_TYPE, SEARCHABLE, Ids, Matrix, stacked

NAME_WEIGHT, MEMORIES_WEIGHT = 0.7, 0.3
# The latest chunks are enough to describe an entity that many memories mention.
CHUNKS_LIMIT = 100

# By entity: its text (all names, merged entities included, and the description), and a mark of the vectors of the memories that mention it,
# which differs as soon as one of them is added, removed or changed: ids of chunks are never reused.
_NOW = f"""
kept AS MATERIALIZED (
    SELECT c.memory_id AS memory, count(*) AS many, sum(c.id) AS total, max(c.id) AS latest FROM vectors v JOIN chunks c ON c.id = v.chunk
    JOIN memories m ON m.id = c.memory_id WHERE v.generation = ?1 AND c.question IS NULL AND {SEARCHABLE} GROUP BY c.memory_id),
named AS (
    SELECT DISTINCT coalesce(e.merged_into, e.id) AS id, em.memory FROM entity_mentions em JOIN entities e ON e.id = em.entity),
pieces AS MATERIALIZED (
    SELECT n.id, sum(k.many) || ':' || sum(k.total) || ':' || max(k.latest) AS mark FROM named n JOIN kept k ON k.memory = n.memory GROUP BY n.id),
now AS (
    SELECT e.id, e.name || coalesce((SELECT ' ' || group_concat(alias, ' ') FROM (
        SELECT DISTINCT a.alias FROM entities g CROSS JOIN entity_aliases a ON a.entity = g.id
        WHERE coalesce(g.merged_into, g.id) = +e.id AND a.alias <> e.name ORDER BY a.alias)), '') || coalesce(': ' || e.description, '') AS text,
        coalesce(p.mark, '') AS mark FROM entities e LEFT JOIN pieces p ON p.id = +e.id WHERE {PRESENT})
"""


@dataclass(frozen=True, slots=True)
class Outdated:
    """An entity with a missing or outdated vector. `name_vector` is None where `text` has to be embedded."""

    entity: int
    text: str
    mark: str
    name_vector: Matrix | None


def outdated(connection: apsw.Connection, generation: str, limit: int) -> list[Outdated]:
    """The entities without an up-to-date vector in a generation, at most `limit`. Looks at every mention."""
    rows = connection.execute(
        f"WITH {_NOW} SELECT n.id, n.text, n.mark, CASE WHEN v.said = n.text THEN v.name_blob END FROM now n "
        "LEFT JOIN entity_vectors v ON v.entity = n.id AND v.generation = ?1 "
        "WHERE v.entity IS NULL OR v.said <> n.text OR v.made_from <> n.mark ORDER BY n.id LIMIT ?2",
        (generation, limit),
    )
    return [
        Outdated(entity, text, mark, None if blob is None else np.frombuffer(blob, BLOB_TYPE).astype(np.float32))
        for entity, text, mark, blob in rows
    ]


def of_memories(connection: apsw.Connection, generation: str, entity: int) -> Matrix:
    """The vectors of the latest chunks of current memories that mention the entity or one that is merged into it."""
    rows = connection.execute(
        "SELECT v.chunk, v.blob FROM (SELECT DISTINCT em.memory AS id FROM entities e JOIN entity_mentions em ON em.entity = e.id "
        "WHERE coalesce(e.merged_into, e.id) = ?2) n CROSS JOIN memories m ON m.id = n.id "
        "CROSS JOIN chunks c ON c.memory_id = m.id AND c.question IS NULL CROSS JOIN vectors v ON v.generation = ?1 AND v.chunk = c.id "
        f"WHERE {SEARCHABLE} ORDER BY v.chunk DESC LIMIT ?3",
        (generation, entity, CHUNKS_LIMIT),
    )
    return stacked(list(rows))[1]


def mixed(name: Matrix, chunks: Matrix) -> Matrix:
    """The vector of an entity, of length 1: the weighted sum of its name's vector and the mean of its memories' vectors."""
    mean = chunks.mean(axis=0) if len(chunks) else np.zeros_like(name)
    length = float(np.linalg.norm(mean))
    whole = NAME_WEIGHT * name + (MEMORIES_WEIGHT / length * mean if length else 0.0)
    return np.asarray(whole / max(float(np.linalg.norm(whole)), 1e-12), np.float32)


def write(connection: apsw.Connection, generation: str, made: Iterable[tuple[Outdated, Matrix, Matrix]]) -> None:
    """Stores the vectors of entities: of the name alone, and the whole. Entities that were deleted meanwhile are skipped."""
    rows = [
        (generation, outdated.mark, whole.astype(BLOB_TYPE).tobytes(), outdated.text, name.astype(BLOB_TYPE).tobytes(), outdated.entity)
        for outdated, name, whole in made
    ]
    connection.executemany(
        "INSERT OR REPLACE INTO entity_vectors(generation, made_from, blob, said, name_blob, entity) SELECT ?,?,?,?,?,id FROM entities WHERE id = ?",
        rows,
    )


def useless(connection: apsw.Connection, keep: Sequence[str]) -> bool:
    """Whether there are vectors of other generations than `keep`, or of entities that are merged or not mentioned any more."""
    return connection.execute(f"SELECT 1 {_USELESS} LIMIT 1", (json.dumps(list(keep)),)).get is not None


def drop_useless(connection: apsw.Connection, keep: Sequence[str]) -> None:
    """Deletes these vectors."""
    connection.execute(f"DELETE {_USELESS}", (json.dumps(list(keep)),))


def drop(connection: apsw.Connection, entities: Collection[int]) -> None:
    """Deletes the vectors of these entities and of those that they are merged into: a memory that was part of them is erased."""
    connection.execute(
        "DELETE FROM entity_vectors WHERE entity IN (SELECT value FROM json_each(?1) "
        "UNION SELECT merged_into FROM entities WHERE merged_into IS NOT NULL AND id IN (SELECT value FROM json_each(?1)))",
        (json_ids(entities),),
    )


def everything(connection: apsw.Connection, generation: str) -> tuple[Ids, Matrix]:
    """The vectors of all entities in a generation: ids of shape (n,), vectors of shape (n, dimension), each of length 1."""
    return stacked(list(connection.execute("SELECT entity, blob FROM entity_vectors WHERE generation = ? ORDER BY entity", (generation,))))


_USELESS = (
    "FROM entity_vectors WHERE generation NOT IN (SELECT value FROM json_each(?1)) "
    f"OR entity NOT IN (SELECT e.id FROM entities e WHERE {PRESENT})"
)
