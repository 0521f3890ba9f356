"""Former types of entities: a text that was written while an entity had another type still means the same entity.

`entities.types_told` is a JSON object of the types that an entity had or has. The value is the time since when a person alone has stated
the type; null where texts may state it.
"""

import json
from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any

import apsw

from memory_mcp.language.names import UNKNOWN_TYPE, bare, fold
from memory_mcp.store.timestamps import to_text

# Whether an entity e had the type in the placeholder.
HAD = "EXISTS (SELECT 1 FROM json_each(e.types_told) had WHERE had.key = {})"
# The former types of an entity e, without those that another entity of its name has now: an annotation of such a type means that one.
FORMER = """(SELECT json_group_array(had.key) FROM json_each(e.types_told) had WHERE had.key <> e.type AND NOT EXISTS (
    SELECT 1 FROM entity_aliases mine JOIN entity_aliases other ON other.bare = mine.bare AND other.entity <> mine.entity
    JOIN entities o ON o.id = other.entity WHERE mine.entity = e.id AND mine.alias = e.name AND o.type = had.key))"""
# `types_told` of an entity of unknown type whose type a text states.
WAS_UNKNOWN = f"json_set(coalesce(types_told, '{{}}'), '$.{UNKNOWN_TYPE}', NULL)"
_WRITTEN_SINCE = """
SELECT 1 FROM entities g WHERE coalesce(g.merged_into, g.id) = ?1 AND (
    EXISTS (SELECT 1 FROM entity_mentions em WHERE em.entity = g.id AND em.created_at >= ?2)
    OR EXISTS (SELECT 1 FROM relation_evidence v WHERE v.source = g.id AND v.memory IS NOT NULL AND v.created_at >= ?2)
    OR EXISTS (SELECT 1 FROM relation_evidence v WHERE v.target = g.id AND v.memory IS NOT NULL AND v.created_at >= ?2))
"""


def ids_with_type(connection: apsw.Connection, name: str, type_: str) -> set[int]:
    """The entities that this name and type may mean though none with the name has the type now: those that had it, or that have it but are
    merged. Merged entities are returned as the ones that are kept."""
    rows = connection.execute(
        "SELECT coalesce(e.merged_into, e.id) FROM entity_aliases a JOIN entities e ON e.id = a.entity "
        f"WHERE a.bare = ?1 AND (e.type = ?2 OR {HAD.format('?2')})",
        (bare(name), type_),
    )
    return {row[0] for row in rows}


def note_change(connection: apsw.Connection, entity: int, type_: str, now: datetime) -> None:
    """Before a person changes the type of an entity: keeps the old one as a former type, unless a person set it and nothing was written
    since.
    """
    previous, type_from, history = _state(connection, entity)
    if type_from == "merge":
        previous = UNKNOWN_TYPE
    if previous == type_:
        return
    since = history.get(previous)
    if since is not None and connection.execute(_WRITTEN_SINCE, (entity, since)).get is None:
        del history[previous]
    else:
        history[previous] = None
    history.setdefault(type_, to_text(now))
    _store(connection, entity, history)


def former_types(connection: apsw.Connection, entity: int) -> list[str]:
    """The types that an entity had, as an export contains them."""
    return list(json.loads(str(connection.execute(f"SELECT {FORMER} FROM entities e WHERE e.id = ?", (entity,)).get)))


def add(connection: apsw.Connection, entity: int, types: Iterable[str]) -> None:
    """Adds types that an entity had elsewhere."""
    _, _, history = _state(connection, entity)
    before = dict(history)
    history.update(dict.fromkeys(types))
    if history != before:
        _store(connection, entity, history)


def adopt_type(connection: apsw.Connection, name: str, type_: str, types: Collection[str]) -> None:
    """Takes over a type that a person set elsewhere, for an entity that has the name and one of the former `types` here; unless a person
    set its type here, or another entity of the name has the type.
    """
    if not types:
        return
    id_ = connection.execute(
        "SELECT e.id FROM entity_aliases a JOIN entities e ON e.id = a.entity AND e.name = a.alias WHERE a.folded = ?1 AND e.merged_into IS NULL "
        "AND e.type_from IS NULL AND e.type IN (SELECT value FROM json_each(?3)) AND NOT EXISTS (SELECT 1 FROM entity_aliases b "
        f"JOIN entities e ON e.id = b.entity WHERE b.folded = ?1 AND (e.type = ?2 OR {HAD.format('?2')})) ORDER BY e.id LIMIT 1",
        (fold(name), type_, json.dumps(list(types))),
    ).get
    if id_ is not None:
        add(connection, int(id_), types)
        connection.execute("UPDATE entities SET type = ?, type_from = 'hand' WHERE id = ?", (type_, id_))


def _state(connection: apsw.Connection, entity: int) -> tuple[str, str | None, dict[str, str | None]]:
    row: Any = connection.execute("SELECT type, type_from, types_told FROM entities WHERE id = ?", (entity,)).fetchone()
    type_, type_from, history = row
    return type_, type_from, json.loads(history) if history else {}


def _store(connection: apsw.Connection, entity: int, history: dict[str, str | None]) -> None:
    connection.execute("UPDATE entities SET types_told = ? WHERE id = ?", (json.dumps(history, sort_keys=True, ensure_ascii=False), entity))
