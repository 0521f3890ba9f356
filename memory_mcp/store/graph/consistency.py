"""What may be wrong with a graph: relations that little speaks for or that do not go together, entities that nothing names, and sums that
are not what they are made of."""

import json
from collections.abc import Sequence
from typing import Any

import apsw

from memory_mcp.store.graph import visibility
from memory_mcp.store.graph.memory_links import OPPOSITE_TYPES, SINGLE_TYPES
from memory_mcp.store.graph.relations import Pair, pairs_of_entities, summed_evidence
from memory_mcp.store.memories import CURRENT

# What is less sure than this is worth a look; what is just so sure, where one memory alone says so. That two are named together is seen, and
# nothing that could be wrong.
UNSURE_BELOW = 0.5
_UNSURE = "(r.type <> 'co_occurrence' AND (r.confidence < ?1 OR (r.confidence = ?1 AND r.evidence_count = 1)))"
_CHECKED_UNTIL = "graph_checked_until"

Told = tuple[str, str, str]

_NAMED = "FROM relations r JOIN entities s ON s.id = r.source JOIN entities t ON t.id = r.target"
# Of whom nothing speaks, no memory in the trash either, and of nobody who is one with it.
_SPOKEN_OF = """
SELECT 1 FROM entities g LEFT JOIN entity_mentions em ON em.entity = g.id
LEFT JOIN relation_evidence s ON s.source = g.id AND (s.memory IS NOT NULL OR s.validation_status <> 'rejected')
LEFT JOIN relation_evidence t ON t.target = g.id AND (t.memory IS NOT NULL OR t.validation_status <> 'rejected')
WHERE coalesce(g.merged_into, g.id) = +e.id AND (g.made_by <> 'text' OR em.memory OR s.id OR t.id)
"""
_ORPHAN = f"""
FROM entities e WHERE e.merged_into IS NULL AND e.extraction_count = 0 AND e.made_by = 'text' AND NOT EXISTS ({_SPOKEN_OF})
"""
_BARE = """
SELECT json_group_array(a.bare) FROM entities g JOIN entity_aliases a ON a.entity = g.id WHERE coalesce(g.merged_into, g.id) = +e.id
"""
# Whether the first had ended before the second began, as far as that is told: one without days goes on when the other has ended.
_BEFORE = "coalesce(coalesce({0}.valid_from, {0}.valid_to, '9999') >= {1}.valid_to, 0)"
_OPPOSED = f"""
SELECT s.name, r.type, t.name, o.type, q.name, count(*) OVER () {_NAMED}
JOIN relations o ON o.source = r.source JOIN entities q ON q.id = o.target
WHERE ((r.type = o.type AND r.type IN (SELECT value FROM json_each(?1)) AND r.target < o.target)
    OR (r.target = o.target AND json_array(r.type, o.type) IN (SELECT value FROM json_each(?2))))
    AND NOT {_BEFORE.format("o", "r")} AND NOT {_BEFORE.format("r", "o")}
ORDER BY max(r.last_evidence_at, o.last_evidence_at) DESC, r.id LIMIT ?3
"""
_COUNTED = f"""
SELECT e.id, e.extraction_count, (
    SELECT count(DISTINCT em.memory) FROM entities p JOIN entity_mentions em ON em.entity = p.id JOIN memories m ON m.id = em.memory
    WHERE coalesce(p.merged_into, p.id) = +e.id AND {CURRENT}) AS counted
FROM entities e WHERE e.merged_into IS NULL AND e.id IN (SELECT value FROM json_each(?))
"""


def unsure(connection: apsw.Connection, limit: int) -> tuple[list[tuple[Told, float]], int]:
    """Relations with their confidence, the least sure first, then the latest, and how many there are."""
    rows = connection.execute(
        f"SELECT s.name, r.type, t.name, r.confidence {_NAMED} WHERE {_UNSURE} ORDER BY r.confidence, r.last_evidence_at DESC, r.id DESC LIMIT ?2",
        (UNSURE_BELOW, limit),
    )
    found = [((source, type_, target), confidence) for source, type_, target, confidence in rows]
    return found, int(connection.execute(f"SELECT count(*) FROM relations r WHERE {_UNSURE}", (UNSURE_BELOW,)).get)


def orphans(connection: apsw.Connection, limit: int) -> tuple[list[str], int]:
    """The names of entities that texts once made and that no memory names any more or is filed under, and how many there are."""
    unnamed: list[Any] = connection.execute(f"SELECT e.id, e.name, ({_BARE}) {_ORPHAN} ORDER BY e.id").fetchall()
    filed = visibility.all_labels(connection) if unnamed else set()
    untold = visibility.hidden_entities(connection, [row[0] for row in unnamed])
    found = [str(name) for entity, name, called in unnamed if entity not in untold and filed.isdisjoint(json.loads(called))]
    return found[:limit], len(found)


def opposed(connection: apsw.Connection, limit: int) -> tuple[list[tuple[Told, Told]], int]:
    """Pairs of relations of which only one can hold at a time, the latest first, and how many there are."""
    opposite = [json.dumps(pair, separators=(",", ":")) for pair in OPPOSITE_TYPES]
    rows: list[Any] = connection.execute(_OPPOSED, (json.dumps(SINGLE_TYPES), json.dumps(opposite), max(limit, 1))).fetchall()
    found = [((source, type_, target), (source, other, others)) for source, type_, target, other, others, _ in rows[:limit]]
    return found, int(rows[0][5]) if rows else 0


def after(connection: apsw.Connection, entity: int, limit: int) -> list[int]:
    """The next entities in the order of their numbers."""
    return [int(row[0]) for row in connection.execute("SELECT id FROM entities WHERE id > ? ORDER BY id LIMIT ?", (entity, limit))]


def wrong_sums(connection: apsw.Connection, entities: Sequence[int]) -> set[Pair]:
    """Pairs with one of these entities whose relations are not the sum of what speaks for them."""
    rows = connection.execute(
        "SELECT source, target, type, directed, weight, evidence_count, confidence FROM relations "
        "WHERE source IN (SELECT value FROM json_each(?1)) OR target IN (SELECT value FROM json_each(?1))",
        (json.dumps(list(entities)),),
    )
    there = {row[:3]: row[3:] for row in rows}
    among = set(entities)
    right = {row[:3]: row[3:7] for row in summed_evidence(connection, pairs_of_entities(connection, entities)) if among & {row[0], row[1]}}
    return {(name[0], name[1]) for name in there.keys() | right.keys() if not _same(there.get(name), right.get(name))}


def _same(one: tuple[Any, ...] | None, other: tuple[Any, ...] | None) -> bool:
    """Sums of the same parts in another order may differ in the last digit."""
    return one is not None and other is not None and all(abs(mine - theirs) < 0.001 for mine, theirs in zip(one, other, strict=True))


def wrong_counts(connection: apsw.Connection, entities: Sequence[int]) -> set[int]:
    """Those of these entities that are not named in as many memories as is noted."""
    return {int(entity) for entity, noted, counted in connection.execute(_COUNTED, (json.dumps(list(entities)),)) if noted != counted}


def checked_until(connection: apsw.Connection) -> int:
    """The entity up to which the graph was looked at in the round under way; 0 where none is."""
    return int(connection.execute("SELECT value FROM properties WHERE name = ?", (_CHECKED_UNTIL,)).get or 0)


def note_checked(connection: apsw.Connection, entity: int) -> None:
    connection.execute("INSERT OR REPLACE INTO properties VALUES (?, ?)", (_CHECKED_UNTIL, str(entity)))
