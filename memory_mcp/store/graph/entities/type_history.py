"""The types that entities had before somebody told another: whatever was written while they had them means the same ones.

`entities.types_told` is a JSON object: each type that an entity had or has, with since when by hand alone, null where texts may say it.
"""

import json
from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any

import apsw

from memory_mcp.store.timestamps import to_text
from memory_mcp.text.mention import UNKNOWN_TYPE
from memory_mcp.text.names import bare, fold

# Whether an entity e had the type in the place.
HAD = "EXISTS (SELECT 1 FROM json_each(e.types_told) had WHERE had.key = {})"
# The former types of an entity e but such as somebody else of its name has now: him a mark of that type means.
FORMER = """(SELECT json_group_array(had.key) FROM json_each(e.types_told) had WHERE had.key <> e.type AND NOT EXISTS (
    SELECT 1 FROM entity_aliases mine JOIN entity_aliases other ON other.bare = mine.bare AND other.entity <> mine.entity
    JOIN entities o ON o.id = other.entity WHERE mine.entity = e.id AND mine.alias = e.name AND o.type = had.key))"""
# What `types_told` is of an entity of which nobody had told a type, and a text does.
WAS_UNKNOWN = f"json_set(coalesce(types_told, '{{}}'), '$.{UNKNOWN_TYPE}', NULL)"
_WRITTEN_SINCE = """
SELECT 1 FROM entities g WHERE coalesce(g.merged_into, g.id) = ?1 AND (
    EXISTS (SELECT 1 FROM entity_mentions em WHERE em.entity = g.id AND em.created_at >= ?2)
    OR EXISTS (SELECT 1 FROM relation_evidence v WHERE v.source = g.id AND v.memory IS NOT NULL AND v.created_at >= ?2)
    OR EXISTS (SELECT 1 FROM relation_evidence v WHERE v.target = g.id AND v.memory IS NOT NULL AND v.created_at >= ?2))
"""


def ids_with_type(connection: apsw.Connection, name: str, type_: str) -> set[int]:
    """Whom this name and type may mean though nobody of that name is of the type now: who had it, or who is one with another and has it
    himself. Merged ones as what they are merged into."""
    rows = connection.execute(
        "SELECT coalesce(e.merged_into, e.id) FROM entity_aliases a JOIN entities e ON e.id = a.entity "
        f"WHERE a.bare = ?1 AND (e.type = ?2 OR {HAD.format('?2')})",
        (bare(name), type_),
    )
    return {row[0] for row in rows}


def note_change(connection: apsw.Connection, entity: int, type_: str, now: datetime) -> None:
    """Before somebody tells the type of an entity: what it was until now stays a type that it had, unless it was so by hand alone, and nothing
    was written meanwhile."""
    was, type_from, told = _state(connection, entity)
    if type_from == "merge":
        was = UNKNOWN_TYPE
    if was == type_:
        return
    since = told.get(was)
    if since is not None and connection.execute(_WRITTEN_SINCE, (entity, since)).get is None:
        del told[was]
    else:
        told[was] = None
    told.setdefault(type_, to_text(now))
    _put(connection, entity, told)


def former_types(connection: apsw.Connection, entity: int) -> list[str]:
    """The types that an entity had, as an export tells them."""
    return list(json.loads(str(connection.execute(f"SELECT {FORMER} FROM entities e WHERE e.id = ?", (entity,)).get)))


def add(connection: apsw.Connection, entity: int, types: Iterable[str]) -> None:
    """Types that an entity had elsewhere."""
    _, _, told = _state(connection, entity)
    before = dict(told)
    told.update(dict.fromkeys(types))
    if told != before:
        _put(connection, entity, told)


def adopt_type(connection: apsw.Connection, name: str, type_: str, types: Collection[str]) -> None:
    """Somebody said elsewhere that whoever is called so is of this type now, and was of those: so is he here, where nobody told it by hand and
    nobody of that name is of the type."""
    if not types:
        return
    found = connection.execute(
        "SELECT e.id FROM entity_aliases a JOIN entities e ON e.id = a.entity AND e.name = a.alias WHERE a.folded = ?1 AND e.merged_into IS NULL "
        "AND e.type_from IS NULL AND e.type IN (SELECT value FROM json_each(?3)) AND NOT EXISTS (SELECT 1 FROM entity_aliases b "
        f"JOIN entities e ON e.id = b.entity WHERE b.folded = ?1 AND (e.type = ?2 OR {HAD.format('?2')})) ORDER BY e.id LIMIT 1",
        (fold(name), type_, json.dumps(list(types))),
    ).get
    if found is not None:
        add(connection, int(found), types)
        connection.execute("UPDATE entities SET type = ?, type_from = 'hand' WHERE id = ?", (type_, found))


def _state(connection: apsw.Connection, entity: int) -> tuple[str, str | None, dict[str, str | None]]:
    row: Any = connection.execute("SELECT type, type_from, types_told FROM entities WHERE id = ?", (entity,)).fetchone()
    type_, type_from, told = row
    return type_, type_from, json.loads(told) if told else {}


def _put(connection: apsw.Connection, entity: int, told: dict[str, str | None]) -> None:
    connection.execute("UPDATE entities SET types_told = ? WHERE id = ?", (json.dumps(told, sort_keys=True, ensure_ascii=False), entity))
