"""What only the trash holds of the graph, and no door tells until it is taken out again: whom only its memories speak of, and further
names that only they have."""

import json
from collections.abc import Iterable

import apsw

# Who or what is asked about, by ?1, with all that is one with it.
_WANTED = (
    "SELECT coalesce(e.merged_into, e.id) AS root, e.id FROM json_each(?1) w JOIN entities e ON coalesce(e.merged_into, e.id) = +w.value"
)
_SPEAKS = """
SELECT g.root, em.memory FROM wanted g JOIN entity_mentions em ON em.entity = g.id
UNION ALL SELECT g.root, v.memory FROM wanted g JOIN relation_evidence v ON v.source = g.id WHERE v.memory IS NOT NULL
UNION ALL SELECT g.root, v.memory FROM wanted g JOIN relation_evidence v ON v.target = g.id WHERE v.memory IS NOT NULL
"""
_ALONE = "SELECT e.id AS root, e.id FROM json_each(?1) w JOIN entities e ON e.id = w.value"
_UNTOLD = """
WITH wanted AS MATERIALIZED ({wanted}), speaks AS ({speaks})
SELECT s.root FROM speaks s JOIN memories m ON m.id = s.memory GROUP BY s.root HAVING min(m.deleted_at IS NOT NULL)
EXCEPT SELECT g.root FROM wanted g JOIN entities e ON e.id = g.id WHERE e.made_by <> 'text'
EXCEPT SELECT g.root FROM wanted g JOIN relation_evidence v ON v.source = g.id AND v.memory IS NULL AND v.validation_status <> 'rejected'
EXCEPT SELECT g.root FROM wanted g JOIN relation_evidence v ON v.target = g.id AND v.memory IS NULL AND v.validation_status <> 'rejected'
"""
# All memories that name most entities are current: only of the others they are looked at, which takes long where there are thousands.
_NOT_ALL_CURRENT = f"""
SELECT g.root, g.id FROM ({_WANTED}) g JOIN entities r ON r.id = g.root WHERE r.extraction_count < (
    SELECT count(DISTINCT em.memory) FROM entities o JOIN entity_mentions em ON em.entity = o.id WHERE coalesce(o.merged_into, o.id) = +g.root)
"""
_NAMES = f"""
WITH wanted AS MATERIALIZED ({_NOT_ALL_CURRENT})
SELECT g.root, a.alias FROM wanted g JOIN entities k ON k.id = g.root JOIN entities e ON e.id = g.id AND e.made_by = 'text'
JOIN entity_aliases a ON a.entity = g.id AND a.alias <> k.name JOIN entity_mentions em ON em.entity = g.id JOIN memories m ON m.id = em.memory AND instr(m.content, a.alias)
GROUP BY a.id HAVING min(m.deleted_at IS NOT NULL)
"""


def untold(connection: apsw.Connection, entities: Iterable[int], *, alone: bool = False) -> set[int]:
    """Those of these entities of whom only memories in the trash speak: each with all that is merged into it, or `alone`. Whoever was made or
    changed by hand, or was related so, is told."""
    asked = list(entities)
    if not asked or _is_empty(connection):
        return set()
    sql = _UNTOLD.format(wanted=_ALONE if alone else _WANTED, speaks=_SPEAKS)
    return {row[0] for row in connection.execute(sql, (json.dumps(asked),))}


def names(connection: apsw.Connection, entities: Iterable[int]) -> dict[int, set[str]]:
    """By entity, those of its further names that only memories in the trash hold."""
    asked, found = list(entities), dict[int, set[str]]()
    if not asked or _is_empty(connection):
        return found
    for entity, alias in connection.execute(_NAMES, (json.dumps(asked),)):
        found.setdefault(entity, set()).add(alias)
    return found


def _is_empty(connection: apsw.Connection) -> bool:
    return connection.execute("SELECT 1 FROM memories WHERE deleted_at IS NOT NULL LIMIT 1").get is None
