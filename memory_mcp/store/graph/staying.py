"""What stays of the graph where some memories stay: whom nothing else names, and the names that nothing else holds.

Queries bind ?1 to whether the trash leaves and ?2 to whether what is secret does. What somebody put down by
hand is not the trash's; what is secret keeps that, too.
"""

import json
from collections.abc import Mapping, Set

import apsw

# Of a memory m.
_WITHHELD = "(NOT ?2 AND m.privacy_level = 'secret')"
STAYS = f"((NOT ?1 AND m.deleted_at IS NOT NULL) OR {_WITHHELD})"
SAID = "SELECT id, source, target FROM relation_evidence WHERE memory IS NULL"
_HIDDEN = f"""
SELECT t.entity FROM (
    SELECT entity, memory FROM entity_mentions
    UNION ALL SELECT source, memory FROM relation_evidence WHERE memory IS NOT NULL
    UNION ALL SELECT target, memory FROM relation_evidence WHERE memory IS NOT NULL) t
JOIN memories m ON m.id = t.memory JOIN entities e ON e.id = t.entity
GROUP BY t.entity HAVING min({STAYS}) AND (max({_WITHHELD}) OR max(e.made_by = 'text'))
EXCEPT SELECT source FROM ({SAID} AND validation_status <> 'rejected')
EXCEPT SELECT target FROM ({SAID} AND validation_status <> 'rejected')
"""
_HELD = f"""
SELECT a.entity, a.alias FROM entity_mentions em JOIN memories m ON m.id = em.memory JOIN entity_aliases a ON a.entity = em.entity
WHERE instr(m.content, a.alias) OR EXISTS (SELECT 1 FROM memory_versions o WHERE o.key = m.key AND instr(o.content, a.alias))
GROUP BY a.id HAVING min({STAYS}) AND (max({_WITHHELD}) OR NOT max(a.by_hand))
"""


def hidden(connection: apsw.Connection, deleted: bool, secret: bool) -> set[int]:
    """The entities of which only memories speak that stay. Merges aside."""
    return {row[0] for row in connection.execute(_HIDDEN, (deleted, secret))}


def held_names(connection: apsw.Connection, deleted: bool, secret: bool) -> dict[int, set[str]]:
    """By entity, merges aside, those of its names that memories which name it hold, or held before they were changed, and none of them leaves."""
    found: dict[int, set[str]] = {}
    for entity, alias in connection.execute(_HELD, (deleted, secret)):
        found.setdefault(entity, set()).add(alias)
    return found


def called(connection: apsw.Connection, held: Mapping[int, Set[str]]) -> dict[int, str]:
    """Of the entities whose own name is among those that are `held`: the first of their names that is not. Who has none keeps his own."""
    rows = connection.execute(
        "SELECT a.entity, a.alias, e.name FROM entity_aliases a JOIN entities e ON e.id = a.entity "
        "WHERE e.id IN (SELECT value FROM json_each(?)) ORDER BY a.id",
        (json.dumps(list(held)),),
    )
    found: dict[int, str] = {}
    for entity, alias, name in rows:
        if name in held[entity] and alias not in held[entity]:
            found.setdefault(entity, alias)
    return found


def called_where_it_leaves(connection: apsw.Connection, deleted: bool, secret: bool) -> dict[int, str]:
    """By entity, the name that it leaves by, where that is not its own."""
    return called(connection, held_names(connection, deleted, secret))
