"""Which memory mentions which entity, and where; what follows for searches and for the counters of entities."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import islice, pairwise

import apsw
import numpy as np
from pydantic_core import from_json

from memory_mcp.domain import Filters
from memory_mcp.language.names import Mention
from memory_mcp.store.memories import CURRENT, EVENT_TIME, where
from memory_mcp.store.sqlite.reading import bulk_rows, json_ids
from memory_mcp.store.timestamps import to_text

# At least one of this many memories is expected to be current: neither in the trash nor replaced.
MOST_REPLACED = 3
# A key of JSON is text. The plus removes the affinity of the cast, which would keep SQLite from using the index of merged entities.
_WANTED = "+CAST(w.entity AS INTEGER)"


def add(connection: apsw.Connection, memory_id: int, mentions: Sequence[tuple[int, Mention]], now: datetime) -> None:
    """Stores the mentions of a memory, each with the id of its entity. The more entities, the less it is about each."""
    relevance, stored_at = round(1 / math.sqrt(max(len({entity for entity, _ in mentions}), 1)), 3), to_text(now)
    rows = [
        (memory_id, entity, mention.start, mention.end, relevance, mention.method, mention.confidence, stored_at)
        for entity, mention in mentions
    ]
    connection.executemany(
        'INSERT OR IGNORE INTO entity_mentions(memory, entity, start, "end", relevance, method, confidence, created_at) VALUES (?,?,?,?,?,?,?,?)',
        rows,
    )


def remove(connection: apsw.Connection, memory_id: int, *, text_changed: bool = True) -> None:
    """Deletes the mentions of a memory; in an unchanged text not those by a chat model, nor of relatives (母), which older versions
    found.
    """
    kept = "" if text_changed else " AND method <> 'model' AND entity NOT IN (SELECT id FROM entities WHERE subtype = 'family')"
    connection.execute(f"DELETE FROM entity_mentions WHERE memory = ?{kept}", (memory_id,))


def entities_of(connection: apsw.Connection, memory_id: int) -> set[int]:
    """The entities that the memory mentions, before merges."""
    return {row[0] for row in connection.execute("SELECT DISTINCT entity FROM entity_mentions WHERE memory = ?", (memory_id,))}


def spans(connection: apsw.Connection, memory_id: int) -> list[tuple[int, int]]:
    """Where the text of the memory mentions entities: start and end in characters."""
    return [
        (int(start), int(end))
        for start, end in connection.execute('SELECT start, "end" FROM entity_mentions WHERE memory = ?', (memory_id,))
    ]


def of_memories(connection: apsw.Connection, memory_ids: Iterable[int]) -> dict[int, list[int]]:
    """The entities that each of these memories mentions, merged entities as the ones that are kept."""
    rows = connection.execute(
        "SELECT DISTINCT em.memory, coalesce(e.merged_into, e.id) FROM entity_mentions em JOIN entities e ON e.id = em.entity "
        "WHERE em.memory IN (SELECT value FROM json_each(?)) ORDER BY em.memory, em.start",
        (json_ids(memory_ids),),
    )
    entities_of: dict[int, list[int]] = {}
    for memory, entity in rows:
        mentioned = entities_of.setdefault(memory, [])
        if entity not in mentioned:
            mentioned.append(entity)
    return entities_of


def relevances(connection: apsw.Connection, memory_ids: Iterable[int]) -> dict[int, dict[int, float]]:
    """For each of these memories the entities that it mentions, with the relevance; merged entities as the ones that are kept."""
    rows = bulk_rows(
        connection,
        "memory, entity, relevance",
        "SELECT em.memory, coalesce(e.merged_into, e.id) AS entity, max(em.relevance) AS relevance "
        "FROM entity_mentions em JOIN entities e ON e.id = em.entity WHERE em.memory IN (SELECT value FROM json_each(?)) GROUP BY 1, 2",
        (json_ids(memory_ids),),
    )
    by_memory: dict[int, dict[int, float]] = {}
    for memory, entity, relevance in rows:
        by_memory.setdefault(memory, {})[entity] = relevance
    return by_memory


def frequencies(connection: apsw.Connection, entities: Iterable[int]) -> tuple[dict[int, int], int]:
    """How many current memories mention each of these entities, and how many memories there have ever been."""
    rows = bulk_rows(
        connection,
        "id, extraction_count, memories",
        "SELECT id, extraction_count, (SELECT max(id) FROM memories) AS memories FROM entities WHERE id IN (SELECT value FROM json_each(?))",
        (json_ids(entities),),
    )
    return {row[0]: row[1] for row in rows}, rows[0][2] or 0 if rows else 0


def memories_of(
    connection: apsw.Connection, entities: Mapping[int, float], filters: Filters, limit: int, factors: Mapping[int, float] | None = None
) -> dict[int, tuple[float, float]]:
    """Current memories that pass the filters and mention these entities, with the sum of each entity's weight × the mention's relevance,
    and the sum of that × the entity's factor; the best by the first sum come first. Without filters, only the best `limit` ×
    `MOST_REPLACED` are checked for being current.
    """
    ids, score, multiplied = _scored(connection, entities, factors or {})
    condition, values = where(filters)
    checked = len(ids) if condition else min(limit * MOST_REPLACED, len(ids))
    by_memory: dict[int, tuple[float, float]] = {}
    for start, stop in pairwise((0, min(limit, checked), checked)):  # most are current
        if start == stop or len(by_memory) >= limit:
            break
        current = connection.execute(
            f"SELECT json_group_array(m.id) FROM memories m WHERE m.id IN (SELECT value FROM json_each(?)) AND {CURRENT} "
            f"AND m.kind <> 'summary' {condition}",
            (json.dumps(ids[start:stop].tolist()), *values),
        )
        passing = set(from_json(current.get))
        some = zip(*(column[start:stop].tolist() for column in (ids, score, multiplied)), strict=True)
        by_memory |= {memory_id: sums for memory_id, *sums in some if memory_id in passing}
    return {memory_id: (first, second) for memory_id, (first, second) in islice(by_memory.items(), limit)}


def _scored(
    connection: apsw.Connection, entities: Mapping[int, float], factors: Mapping[int, float]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The memories that mention these entities, and both sums of each: the best by the first sum first, of equals the one that was
    stored later.
    """
    named = "FROM entities e JOIN entity_mentions em ON em.entity = e.id WHERE coalesce(e.merged_into, e.id) = w.value"
    rows = connection.execute(
        f"SELECT w.value, (SELECT json_group_array(em.memory) {named}), (SELECT json_group_array(em.relevance) {named}) FROM json_each(?) w",
        (json_ids(entities),),
    )
    ids, scores, multiplied = [np.empty(0, np.int64)], [np.empty(0)], [np.empty(0)]
    for entity, of_memories, of_relevances in rows:
        memories, relevance = np.array(from_json(of_memories), np.int64), np.array(from_json(of_relevances), np.float64)
        order = np.lexsort((relevance, memories))
        highest = order[np.append(np.diff(memories[order]) != 0, True)[: len(order)]]  # of several mentions in one memory
        ids.append(memories[highest])
        scores.append(entities[entity] * relevance[highest])
        multiplied.append(scores[-1] * factors.get(entity, 1.0))
    distinct, positions = np.unique(np.concatenate(ids), return_inverse=True)
    score, product = (np.bincount(positions, np.concatenate(some), len(distinct)) for some in (scores, multiplied))
    best = np.lexsort((distinct, score))[::-1]
    return distinct[best], score[best], product[best]


def memories_stating(connection: apsw.Connection, entities: Mapping[int, float], filters: Filters, limit: int) -> dict[int, float]:
    """Current memories that pass the filters and state a relation of these entities, whether or not their text mentions them; each with the
    highest weight of an entity × that of the relation. The best first."""
    condition, values = where(filters)
    rows = connection.execute(
        "WITH wanted(entity, weight) AS (SELECT key, value FROM json_each(?)), "
        f"own AS (SELECT e.id, w.weight FROM wanted w JOIN entities e ON coalesce(e.merged_into, e.id) = {_WANTED}), "
        "said AS (SELECT v.memory, v.weight * o.weight AS share FROM own o JOIN relation_evidence v ON v.source = o.id "
        "WHERE v.method = 'stated' UNION ALL "
        "SELECT v.memory, v.weight * o.weight FROM own o JOIN relation_evidence v ON v.target = o.id WHERE v.method = 'stated') "
        "SELECT m.id, max(s.share) AS score FROM said s JOIN memories m ON m.id = s.memory "
        f"WHERE {CURRENT} AND m.kind <> 'summary' {condition} GROUP BY m.id ORDER BY score DESC, m.id DESC LIMIT ?",
        (json.dumps({str(entity): weight for entity, weight in entities.items()}), *values, limit),
    )
    return {memory: float(score) for memory, score in rows}


def count_new_memory(connection: apsw.Connection, entities: Iterable[int], happened: datetime) -> None:
    """Adds a new memory that mentions these entities to their counters. The same as `recount`, without reading all other memories."""
    moment = to_text(happened)
    connection.execute(
        "UPDATE entities SET extraction_count = extraction_count + 1, first_mentioned_at = min(coalesce(first_mentioned_at, ?1), ?1), "
        "last_mentioned_at = max(coalesce(last_mentioned_at, ?1), ?1) "
        "WHERE id IN (SELECT coalesce(merged_into, id) FROM entities WHERE id IN (SELECT value FROM json_each(?2)))",
        (moment, json.dumps(sorted(set(entities)))),
    )


def recount(connection: apsw.Connection, entities: Iterable[int]) -> None:
    """Counts how often and when current memories mention these entities, or those that they are merged into."""
    connection.execute(
        "WITH wanted AS (SELECT DISTINCT coalesce(e.merged_into, e.id) AS id FROM entities e WHERE e.id IN (SELECT value FROM json_each(?))), "
        "counted AS (SELECT w.id, count(DISTINCT m.id) AS many, min(CASE WHEN m.id IS NOT NULL THEN "
        f"{EVENT_TIME} END) AS first, max(CASE WHEN m.id IS NOT NULL THEN {EVENT_TIME} END) AS last "
        "FROM wanted w LEFT JOIN entities e ON coalesce(e.merged_into, e.id) = w.id "
        "LEFT JOIN entity_mentions em ON em.entity = e.id "
        f"LEFT JOIN memories m ON m.id = em.memory AND {CURRENT} GROUP BY w.id) "
        "UPDATE entities SET extraction_count = c.many, first_mentioned_at = c.first, last_mentioned_at = c.last FROM counted c WHERE entities.id = c.id",
        (json.dumps(sorted(set(entities))),),
    )
