"""What may be wrong in the graph: uncertain and contradicting relations, entities without support, sums that differ from their evidence."""

import json
from collections.abc import Sequence
from typing import Any

import apsw

from memory_mcp.store import properties
from memory_mcp.store.graph import visibility
from memory_mcp.store.graph.memory_links import OPPOSITE_TYPES, SINGLE_TYPES
from memory_mcp.store.graph.relations import Pair, pairs_of_entities, summed_evidence
from memory_mcp.store.memories import CURRENT
from memory_mcp.store.sqlite.reading import json_ids

# Relations below this confidence are worth a look, or of just this confidence with a single piece of evidence. Co-occurrence is observed,
# so it can't be wrong.
UNSURE_BELOW = 0.5
_UNSURE = "(r.type <> 'co_occurrence' AND (r.confidence < ?1 OR (r.confidence = ?1 AND r.evidence_count = 1)))"
_CHECKED_UNTIL = "graph_checked_until"

Triple = tuple[str, str, str]

_NAMED = "FROM relations r JOIN entities s ON s.id = r.source JOIN entities t ON t.id = r.target"
# Whether anything supports an entity or one that is merged into it, the trash included.
_SUPPORTED = """
SELECT 1 FROM entities g LEFT JOIN entity_mentions em ON em.entity = g.id
LEFT JOIN relation_evidence s ON s.source = g.id AND (s.memory IS NOT NULL OR s.validation_status <> 'rejected')
LEFT JOIN relation_evidence t ON t.target = g.id AND (t.memory IS NOT NULL OR t.validation_status <> 'rejected')
WHERE coalesce(g.merged_into, g.id) = +e.id AND (g.made_by <> 'text' OR em.memory OR s.id OR t.id)
"""
_ORPHAN = f"""
FROM entities e WHERE e.merged_into IS NULL AND e.extraction_count = 0 AND e.made_by = 'text' AND NOT EXISTS ({_SUPPORTED})
"""
_BARE = """
SELECT json_group_array(a.bare) FROM entities g JOIN entity_aliases a ON a.entity = g.id WHERE coalesce(g.merged_into, g.id) = +e.id
"""
# Whether {1} ended before {0} began, as far as known: {0} without dates goes on after {1} has ended.
_BEFORE = "coalesce(coalesce({0}.valid_from, {0}.valid_to, '9999') >= {1}.valid_to, 0)"
# Of an entity with hundreds of relations of a type that allows one, the latest are compared: all pairs of 50,000 take minutes.
COMPARED_LIMIT = 50
_OPPOSED = f"""
WITH single AS MATERIALIZED (
    SELECT id, source, target, type, row_number() OVER (PARTITION BY source, type ORDER BY last_evidence_at DESC, id DESC) AS age
    FROM relations WHERE type <> 'co_occurrence' AND type IN (SELECT value FROM json_each(?1))),
latest AS MATERIALIZED (SELECT * FROM single WHERE age <= {COMPARED_LIMIT}),
pairs(one, other) AS (
    SELECT a.id, b.id FROM latest a JOIN latest b ON b.source = a.source AND b.type = a.type AND a.target < b.target
    UNION ALL SELECT a.id, b.id FROM json_each(?2) opposite
        CROSS JOIN relations a ON a.type <> 'co_occurrence' AND a.type = opposite.value ->> '$[0]'
        CROSS JOIN relations b ON b.source = a.source AND b.target = a.target AND b.type = opposite.value ->> '$[1]')
SELECT s.name, r.type, t.name, o.type, q.name, count(*) OVER () FROM pairs JOIN relations r ON r.id = pairs.one
JOIN relations o ON o.id = pairs.other JOIN entities s ON s.id = r.source JOIN entities t ON t.id = r.target
JOIN entities q ON q.id = o.target
WHERE NOT {_BEFORE.format("o", "r")} AND NOT {_BEFORE.format("r", "o")}
ORDER BY max(r.last_evidence_at, o.last_evidence_at) DESC, r.id LIMIT ?3
"""
_COUNTED = f"""
SELECT e.id, e.extraction_count, (
    SELECT count(DISTINCT em.memory) FROM entities p JOIN entity_mentions em ON em.entity = p.id JOIN memories m ON m.id = em.memory
    WHERE coalesce(p.merged_into, p.id) = +e.id AND {CURRENT}) AS counted
FROM entities e WHERE e.merged_into IS NULL AND e.id IN (SELECT value FROM json_each(?))
"""


def unsure(connection: apsw.Connection, limit: int) -> tuple[list[tuple[Triple, float]], int]:
    """Uncertain relations with their confidence, the least certain first, then the latest; and how many there are."""
    rows = connection.execute(
        f"SELECT s.name, r.type, t.name, r.confidence {_NAMED} WHERE {_UNSURE} ORDER BY r.confidence, r.last_evidence_at DESC, r.id DESC LIMIT ?2",
        (UNSURE_BELOW, limit),
    )
    relations = [((source, type_, target), confidence) for source, type_, target, confidence in rows]
    return relations, int(connection.execute(f"SELECT count(*) FROM relations r WHERE {_UNSURE}", (UNSURE_BELOW,)).get)


def orphans(connection: apsw.Connection, limit: int) -> tuple[list[str], int]:
    """The names of entities from texts that no memory mentions any more or is filed under; and how many there are."""
    unnamed: list[Any] = connection.execute(f"SELECT e.id, e.name, ({_BARE}) {_ORPHAN} ORDER BY e.id").fetchall()
    labels = visibility.all_labels(connection) if unnamed else set()
    hidden = visibility.hidden_entities(connection, [row[0] for row in unnamed])
    orphaned = [str(name) for entity, name, names in unnamed if entity not in hidden and labels.isdisjoint(json.loads(names))]
    return orphaned[:limit], len(orphaned)


def opposed(connection: apsw.Connection, limit: int) -> tuple[list[tuple[Triple, Triple]], int]:
    """Pairs of relations of which only one can hold at a time, the latest first, and how many there are."""
    opposite = [json.dumps(pair, separators=(",", ":")) for pair in OPPOSITE_TYPES]
    rows: list[Any] = connection.execute(_OPPOSED, (json.dumps(SINGLE_TYPES), json.dumps(opposite), max(limit, 1))).fetchall()
    pairs = [((source, type_, target), (source, other, others)) for source, type_, target, other, others, _ in rows[:limit]]
    return pairs, int(rows[0][5]) if rows else 0


def after(connection: apsw.Connection, entity: int, limit: int) -> list[int]:
    """The ids of the next entities in ascending order."""
    return [int(row[0]) for row in connection.execute("SELECT id FROM entities WHERE id > ? ORDER BY id LIMIT ?", (entity, limit))]


def wrong_sums(connection: apsw.Connection, entities: Sequence[int]) -> set[Pair]:
    """Pairs with one of these entities whose relations differ from the sum of their evidence."""
    rows = connection.execute(
        "SELECT source, target, type, directed, weight, evidence_count, confidence FROM relations "
        "WHERE source IN (SELECT value FROM json_each(?1)) OR target IN (SELECT value FROM json_each(?1))",
        (json_ids(entities),),
    )
    stored = {row[:3]: row[3:] for row in rows}
    among = set(entities)
    expected = {
        row[:3]: row[3:7] for row in summed_evidence(connection, pairs_of_entities(connection, entities)) if among & {row[0], row[1]}
    }
    return {(name[0], name[1]) for name in stored.keys() | expected.keys() if not _same(stored.get(name), expected.get(name))}


def _same(stored: tuple[Any, ...] | None, expected: tuple[Any, ...] | None) -> bool:
    """Sums of the same parts in another order may differ in the last digit."""
    if stored is None or expected is None:
        return False
    return all(abs(value - other) < 0.001 for value, other in zip(stored, expected, strict=True))


def wrong_counts(connection: apsw.Connection, entities: Sequence[int]) -> set[int]:
    """Those of these entities with a wrong stored number of mentions."""
    return {int(entity) for entity, noted, counted in connection.execute(_COUNTED, (json_ids(entities),)) if noted != counted}


def checked_until(connection: apsw.Connection) -> int:
    """The entity up to which the current round of checks has come; 0 at its beginning."""
    return int(properties.value(connection, _CHECKED_UNTIL) or 0)


def note_checked(connection: apsw.Connection, entity: int) -> None:
    properties.put(connection, _CHECKED_UNTIL, str(entity))
