"""Rows of entities and their names: read by id or name, created, given names and types."""

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import apsw

from memory_mcp.dates.statements import day_called
from memory_mcp.language.names import UNKNOWN_TYPE, bare, fold
from memory_mcp.store.graph.entities import type_history
from memory_mcp.store.sqlite.reading import json_ids
from memory_mcp.store.timestamps import optional_from_text, to_text

# The type of an entity e without the entities that are merged into it.
OWN_TYPE = f"iif({{e}}.type_from IS 'merge', '{UNKNOWN_TYPE}', {{e}}.type)"
# +e.id removes the column affinity, which would keep SQLite from using the index of merged entities.
_COLUMNS = (
    "e.id, e.entity_id, e.type, e.name, e.subtype, e.description, e.confidence, e.extraction_count, e.attributes, e.importance, "
    "e.first_mentioned_at, e.last_mentioned_at, e.merged_into, "
    "(SELECT json_group_array(alias) FROM (SELECT a.alias FROM entity_aliases a WHERE a.entity = e.id AND a.alias <> e.name ORDER BY a.alias)), "
    "(SELECT json_group_array(alias) FROM (SELECT DISTINCT a.alias FROM entities g CROSS JOIN entity_aliases a ON a.entity = g.id "
    "WHERE coalesce(g.merged_into, g.id) = +e.id AND g.id <> e.id ORDER BY a.alias))"
)


@dataclass(frozen=True, slots=True)
class Entity:
    """A person or thing that memories mention. `confidence` and `importance` are 0 to 1; times are aware, UTC.

    `aliases` are its own further names, `merged_names` all names of the entities that are merged into it.
    """

    id: int
    entity_id: str
    type: str
    name: str
    subtype: str | None = None
    description: str | None = None
    confidence: float = 0.5
    extraction_count: int = 0
    attributes: Mapping[str, Any] = field(default_factory=dict)
    importance: float = 0.5
    first_mentioned_at: datetime | None = None
    last_mentioned_at: datetime | None = None
    merged_into: int | None = None
    aliases: tuple[str, ...] = ()
    merged_names: tuple[str, ...] = ()


def by_ids(connection: apsw.Connection, ids: Iterable[int]) -> dict[int, Entity]:
    """The entities with these ids, merged ones included."""
    # One row of JSON: between two rows, other threads take the interpreter lock.
    rows = connection.execute(
        f"SELECT json_group_array(json_array({_COLUMNS})) FROM entities e WHERE e.id IN (SELECT value FROM json_each(?))",
        (json_ids(ids),),
    ).get
    return {entity.id: entity for entity in map(_entity, json.loads(str(rows)))}


def by_name(connection: apsw.Connection, name: str) -> list[Entity]:
    """The entities with this name, the most mentioned first: with exactly this name if there are any, else with other honorifics, else the
    day that the name means in another notation. A merged entity is returned as the one that is kept."""
    return next(by_name_forms(connection, name), [])


def by_name_forms(connection: apsw.Connection, name: str) -> Iterator[list[Entity]]:
    """The entities with exactly this name, then those with other honorifics, then the day; empty groups are left out."""
    for column, wanted in _forms(name):
        entities = _selected(
            connection,
            f"IN (SELECT coalesce(f.merged_into, f.id) FROM entity_aliases a JOIN entities f ON f.id = a.entity WHERE a.{column} = ?) "
            "ORDER BY e.extraction_count DESC, e.id",
            wanted,
        )
        if entities:
            yield entities


def by_entity_id(connection: apsw.Connection, entity_id: str) -> list[Entity]:
    """The entity with this public id, or the one that it is merged into; none where there is no such id."""
    return _selected(connection, "= (SELECT coalesce(f.merged_into, f.id) FROM entities f WHERE f.entity_id = ?)", entity_id)


def by_similar_name(connection: apsw.Connection, name: str, limit: int) -> list[Entity]:
    """Entities with a name that contains this one or is contained in it, without honorifics; the most mentioned first."""
    return _selected(
        connection,
        "IN (SELECT coalesce(f.merged_into, f.id) FROM entity_aliases a JOIN entities f ON f.id = a.entity "
        "WHERE instr(a.bare, ?1) OR (length(a.bare) > 1 AND instr(?1, a.bare))) ORDER BY e.extraction_count DESC, e.id LIMIT ?2",
        name,
        limit,
    )


def _selected(connection: apsw.Connection, which: str, *wanted: str | int) -> list[Entity]:
    return [_entity(row) for row in connection.execute(f"SELECT {_COLUMNS} FROM entities e WHERE e.id {which}", wanted)]


def _forms(name: str) -> Iterator[tuple[str, str]]:
    """The ways to look for a name: the column and its value."""
    yield "folded", fold(name)
    yield "bare", bare(name)
    if day := day_called(name, None):
        yield "folded", fold(day.name)


def find_or_create(
    connection: apsw.Connection,
    name: str,
    type_: str | None,
    confidence: float,
    now: datetime,
    *,
    subtype: str | None = None,
    likely: str | None = None,
) -> int:
    """The id of the entity with this name, and of this type where one is given; a new one if there is none. Of merged entities it is the
    one that has the name itself, so that the merge can be undone. `likely` is a guess of the type, where none is given.
    """
    entity = find(connection, name, type_, likely=likely)
    if entity is None:
        return create(connection, name, type_ or likely or UNKNOWN_TYPE, confidence, now, subtype=subtype)
    if stated_type := type_ or likely:
        fill_type(connection, entity.id, stated_type, now)
    owner = _name_owner(connection, entity, name)
    if confidence > entity.confidence:
        connection.execute("UPDATE entities SET confidence = max(confidence, ?) WHERE id = ?", (confidence, owner))
    return owner


def find(
    connection: apsw.Connection, name: str, type_: str | None, *, likely: str | None = None, among: Sequence[Entity] | None = None
) -> Entity | None:
    """The entity that this name means, of this type if one is given, or that had the type before a person changed it. One with this as
    its own name comes before those that have it as a further name, then the most mentioned. None if there is none, or if it is a further
    name of several, unless a person gave it to only one. `among` are the candidates, instead of all entities with the name.
    """
    with_name = by_name(connection, name) if among is None else among
    candidates = [entity for entity in with_name if type_ is None or entity.type in (type_, UNKNOWN_TYPE)]
    wanted = type_ or likely
    formerly: set[int] = set()
    if wanted and with_name and all(entity.type != wanted for entity in with_name):
        formerly = type_history.ids_with_type(connection, name, wanted)
    if formerly:
        candidates = [entity for entity in with_name if entity.id in formerly] or candidates
    elif type_ is None and likely == "Person":
        # 福島さん is not the place.
        candidates = [entity for entity in candidates if entity.type != "Location"]
    if wanted and not formerly:
        of_type = [entity for entity in candidates if entity.type == wanted]
        candidates = of_type or [entity for entity in candidates if entity.type == UNKNOWN_TYPE] or candidates
    if len(candidates) == 1 and (bare(candidates[0].name) == bare(name) or not is_day_without_year(name)):
        return candidates[0]
    with_own_name = ids_by_own_name(connection, name) if candidates else set()
    own = [entity for entity in candidates if entity.id in with_own_name]
    if own:
        return own[0]
    if is_day_without_year(name):
        return None
    rows = connection.execute(  # a hidden name may be given to another entity
        "SELECT coalesce(e.merged_into, e.id) FROM entity_aliases a JOIN entities e ON e.id = a.entity WHERE a.bare = ? AND a.by_hand",
        (bare(name),),
    )
    named_by_hand = {row[0] for row in rows}
    by_hand = [entity for entity in candidates if entity.id in named_by_hand]
    return by_hand[0] if len(by_hand) == 1 else None


def ids_by_own_name(connection: apsw.Connection, name: str) -> set[int]:
    """The entities with this as their own name, or as that of an entity merged into them: a further name before a merge stays one after
    it.
    """
    rows = connection.execute(
        "SELECT coalesce(e.merged_into, e.id), e.name FROM entity_aliases a JOIN entities e ON e.id = a.entity WHERE a.bare = ?",
        (bare(name),),
    )
    return {root for root, own_name in rows if bare(own_name) == bare(name)}


def is_day_without_year(name: str) -> bool:
    """Whether a name is a date such as 10月17日: as an own name it means the day of every year, as a further name it means no entity."""
    day = day_called(name, None)
    return day is not None and "月" in day.name


def fill_type(connection: apsw.Connection, entity_id: int, type_: str, now: datetime) -> None:
    """Sets the type of an entity, or of the one that it is merged into, if it is unknown. A type set by hand stays."""
    connection.execute(
        f"UPDATE entities SET type = ?1, type_from = NULL, types_told = {type_history.WAS_UNKNOWN}, updated_at = ?2 WHERE type_from IS NOT 'hand' "
        "AND ((type = ?3 AND type <> ?1) OR (type_from = 'merge' AND type = ?1)) "
        "AND id = (SELECT coalesce(merged_into, id) FROM entities WHERE id = ?4)",
        (type_, to_text(now), UNKNOWN_TYPE, entity_id),
    )


def create(
    connection: apsw.Connection,
    name: str,
    type_: str,
    confidence: float,
    now: datetime,
    *,
    subtype: str | None = None,
    description: str | None = None,
    made_by: str = "text",
) -> int:
    """Creates an entity, with its name as the first alias. Returns its id."""
    moment = to_text(now)
    connection.execute(
        "INSERT INTO entities(entity_id, type, subtype, name, description, confidence, made_by, created_at, updated_at) "
        "VALUES (?,?,?,?,?,?,?,?,?)",
        (str(uuid.uuid4()), type_, subtype, name, description, confidence, made_by, moment, moment),
    )
    entity_id = connection.last_insert_rowid()
    if made_by == "text":
        add_aliases(connection, entity_id, [name])
    else:
        add_names_by_hand(connection, entity_id, [name])
    return entity_id


def add_aliases(connection: apsw.Connection, entity_id: int, aliases: Sequence[str]) -> None:
    """Adds names to an entity; names that it has already are skipped."""
    rows = [(fold(alias), entity_id, bare(alias), alias) for alias in aliases if fold(alias)]
    connection.executemany("INSERT OR IGNORE INTO entity_aliases(folded, entity, bare, alias, mark) VALUES (?,?,?,?,random())", rows)


def add_names_by_hand(connection: apsw.Connection, entity_id: int, names: Sequence[str]) -> None:
    """Adds names that a person gives an entity: they stay visible, whatever memories are forgotten."""
    add_aliases(connection, entity_id, names)
    mark_names_by_hand(connection, entity_id, names)


def mark_names_by_hand(connection: apsw.Connection, entity_id: int, names: Sequence[str]) -> None:
    """Marks those of an entity's names that a person used: they stay visible, too."""
    folded = json.dumps([fold(name) for name in names])
    connection.execute(
        "UPDATE entity_aliases SET by_hand = 1 WHERE entity = ? AND folded IN (SELECT value FROM json_each(?))", (entity_id, folded)
    )


def names_by_hand(connection: apsw.Connection, entity_id: int) -> list[str]:
    """Those of an entity's names that a person gave it, without merged entities."""
    return [
        row[0] for row in connection.execute("SELECT alias FROM entity_aliases WHERE entity = ? AND by_hand ORDER BY alias", (entity_id,))
    ]


def _name_owner(connection: apsw.Connection, entity: Entity, name: str) -> int:
    if not entity.merged_names:
        return entity.id
    owner = connection.execute(
        "SELECT a.entity FROM entities e JOIN entity_aliases a ON a.entity = e.id WHERE coalesce(e.merged_into, e.id) = ?1 "
        "AND a.bare = ?3 ORDER BY a.folded = ?2 DESC, a.entity = ?1 DESC, a.entity LIMIT 1",
        (entity.id, fold(name), bare(name)),
    ).get
    return int(owner or entity.id)


def entity_types(connection: apsw.Connection) -> dict[str, str]:
    """The types that an entity can have, with their display names."""
    return dict(connection.execute("SELECT name, display_name FROM entity_types ORDER BY name"))


def _entity(row: Sequence[Any]) -> Entity:
    *described, attributes, importance, first, last, merged_into, aliases, merged_names = row
    known, mentioned = json.loads(attributes) if attributes else {}, (optional_from_text(first), optional_from_text(last))
    values: list[Any] = [*described, known, importance, *mentioned, merged_into, _names(aliases), _names(merged_names)]
    return Entity(*values)


def _names(column: Any) -> tuple[str, ...]:
    """Names from JSON text; inside another JSON text they are a list already."""
    return tuple(json.loads(column) if isinstance(column, str) else column)
