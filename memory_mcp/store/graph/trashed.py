"""What only the trash holds of the graph, and no door tells until it is taken out again: whom only its memories speak of, and further
names that only they have and nobody put down by hand."""

import json
from collections.abc import Callable, Iterable
from typing import Any

import apsw

from memory_mcp.text.entities.folding import fold

# Who or what is asked about, by ?1, with all that is one with it.
_WANTED = (
    "SELECT coalesce(e.merged_into, e.id) AS root, e.id FROM json_each(?1) w JOIN entities e ON coalesce(e.merged_into, e.id) = +w.value"
)
_SPEAKS = """
SELECT g.root, em.memory FROM wanted g JOIN entity_mentions em ON em.entity = g.id
UNION ALL SELECT g.root, v.memory FROM wanted g CROSS JOIN relation_evidence v ON v.source = g.id WHERE v.memory IS NOT NULL
UNION ALL SELECT g.root, v.memory FROM wanted g CROSS JOIN relation_evidence v ON v.target = g.id WHERE v.memory IS NOT NULL
"""
_ALONE = "SELECT e.id AS root, e.id FROM json_each(?1) w JOIN entities e ON e.id = w.value"
_UNTOLD = """
WITH wanted AS MATERIALIZED ({wanted}), speaks AS ({speaks})
SELECT s.root FROM speaks s JOIN memories m ON m.id = s.memory GROUP BY s.root HAVING min(m.deleted_at IS NOT NULL)
EXCEPT SELECT g.root FROM wanted g JOIN entities e ON e.id = g.id WHERE e.made_by <> 'text'
EXCEPT SELECT g.root FROM wanted g CROSS JOIN relation_evidence v ON v.source = g.id AND v.memory IS NULL AND v.validation_status <> 'rejected'
EXCEPT SELECT g.root FROM wanted g CROSS JOIN relation_evidence v ON v.target = g.id AND v.memory IS NULL AND v.validation_status <> 'rejected'
"""
# What memories that name somebody say or said before they were changed, and by which names they state relations of him: those in the trash, or
# the others. One that an older version stored did not keep the name. Days are told by rules: one name stands for every form.
_SAY = f"""
WITH wanted AS MATERIALIZED (SELECT g.root, g.id, e.name, g.id <> g.root OR e.made_by <> 'text' AS has_further
    FROM ({_WANTED}) g JOIN entities e ON e.id = g.id AND coalesce(e.subtype, '') <> 'day')
SELECT g.root, m.content || coalesce((SELECT char(10) || group_concat(o.content, char(10)) FROM memory_versions o WHERE o.key = m.key), '')
FROM {{mentions}} WHERE m.deleted_at {{deleted}}
UNION ALL SELECT g.root, coalesce(v.source_said, g.name) FROM wanted g CROSS JOIN relation_evidence v ON v.source = g.id AND v.method = 'stated'
CROSS JOIN memories m ON m.id = v.memory WHERE m.deleted_at {{deleted}} AND {{relations_of}}
UNION ALL SELECT g.root, coalesce(v.target_said, g.name) FROM wanted g CROSS JOIN relation_evidence v ON v.target = g.id AND v.method = 'stated'
CROSS JOIN memories m ON m.id = v.memory WHERE m.deleted_at {{deleted}} AND {{relations_of}}
"""
# CROSS: left to itself, SQLite looks at all memories there are. The trash is the smaller part: looked through first. A relation makes a further
# name only where whoever it names was merged or renamed since.
_SAYING_IN_THE_TRASH = _SAY.format(
    mentions="memories m CROSS JOIN entity_mentions em ON em.memory = m.id JOIN wanted g ON g.id = em.entity",
    deleted="IS NOT NULL",
    relations_of="g.has_further",
)
_SAYING = _SAY.format(
    mentions="wanted g CROSS JOIN entity_mentions em ON em.entity = g.id CROSS JOIN memories m ON m.id = em.memory",
    deleted="IS NULL",
    relations_of="true",
)
_ALIASES = f"""
SELECT g.root, a.alias FROM ({_WANTED}) g JOIN entities k ON k.id = g.root
JOIN entity_aliases a ON a.entity = g.id AND NOT a.by_hand AND a.alias <> k.name
WHERE NOT EXISTS (SELECT 1 FROM entities h JOIN entity_aliases b ON b.entity = h.id
    WHERE coalesce(h.merged_into, h.id) = +g.root AND b.by_hand AND b.folded = a.folded)
"""


def untold(connection: apsw.Connection, entities: Iterable[int], *, alone: bool = False) -> set[int]:
    """Those of these entities of whom only memories in the trash speak: each with all that is merged into it, or `alone`. Whoever was made or
    changed by hand, or was related so, is told."""
    asked = list(entities)
    if not asked or _is_empty(connection):
        return set()
    sql = _UNTOLD.format(wanted=_ALONE if alone else _WANTED, speaks=_SPEAKS)
    return {row[0] for row in connection.execute(sql, (json.dumps(asked),))}


def names(connection: apsw.Connection, entities: Iterable[int], fits: Callable[[str], bool] = bool) -> dict[int, set[str]]:
    """By entity, those of its further names that only memories in the trash hold, in whatever case and width, and nobody put down by hand;
    of those that `fits` is true for."""
    asked = list(entities)
    if not asked or _is_empty(connection):
        return {}
    forgotten: dict[int, list[str]] = {}
    for entity, content in _rows(connection, _SAYING_IN_THE_TRASH, asked):
        forgotten.setdefault(entity, []).append(fold(content))
    aliases: dict[int, dict[str, str]] = {}
    for entity, alias in _rows(connection, _ALIASES, list(forgotten)):
        if fits(alias) and any(fold(alias) in text for text in forgotten[entity]):
            aliases.setdefault(entity, {})[alias] = fold(alias)
    for entity, left in aliases.items():
        for _, content in _rows(connection, _SAYING, [entity]):
            text = fold(content)
            for alias in [alias for alias, folded in left.items() if folded in text]:
                del left[alias]
            if not left:
                break
    return {entity: set(left) for entity, left in aliases.items() if left}


def _rows(connection: apsw.Connection, sql: str, asked: list[int]) -> Iterable[Any]:
    return connection.execute(sql, (json.dumps(asked),)) if asked else ()


def _is_empty(connection: apsw.Connection) -> bool:
    return connection.execute("SELECT 1 FROM memories WHERE deleted_at IS NOT NULL LIMIT 1").get is None
