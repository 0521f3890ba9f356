"""What an export tells of the graph beside the memories: what somebody said by hand. What follows from texts is found again in them.

Of an entity that only memories speak of which stay here, nothing leaves; nor does a refusal of what only such a memory says.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

import apsw

from memory_mcp.store.graph import visibility
from memory_mcp.store.graph.entities import lookup, type_history
from memory_mcp.store.graph.entities import records as graph_entities
from memory_mcp.store.graph.entities.records import Entity
from memory_mcp.store.graph.memory_links import DERIVED
from memory_mcp.store.graph.overview import PRESENT, RELATION, Relation, relation_of
from memory_mcp.store.graph.visibility import SAID, STAYS
from memory_mcp.store.memories import secret_count

Row = dict[str, Any]


def _type(entity: str) -> str:
    """What an entity is, as it was before any merge: who is one with whom leaves, too."""
    return graph_entities.OWN_TYPE.format(e=entity)


_ALIASES = """
SELECT json_group_array(alias) FROM (SELECT a.alias FROM entity_aliases a WHERE a.entity = e.id {} ORDER BY a.alias)
"""
_TOLD = f"""
SELECT e.name AS entity, {_type("e")} AS type, e.subtype, ({_ALIASES.format("")}) AS aliases, ({_ALIASES.format("AND a.by_hand")}) AS names_by_hand, e.description, e.attributes, e.importance, e.confidence, e.made_by,
    iif(e.type_from IS 'hand', 1, NULL) AS type_by_hand, {type_history.FORMER} AS former_types, e.entity_id, e.created_at, e.id AS id, e.id
FROM entities e WHERE e.made_by <> 'text' OR e.description IS NOT NULL OR e.attributes IS NOT NULL
    OR e.id IN (SELECT source FROM ({SAID}) UNION SELECT target FROM ({SAID}))
    OR e.id IN (SELECT value FROM json_each(?1))
    OR e.id IN (SELECT a.entity FROM entity_aliases a JOIN entity_aliases b ON b.bare = a.bare AND b.entity <> a.entity)
    OR EXISTS (SELECT 1 FROM entity_aliases a WHERE a.entity = e.id AND a.alias <> e.name AND NOT EXISTS (
        SELECT 1 FROM entity_mentions em JOIN memories m ON m.id = em.memory WHERE em.entity = e.id AND instr(m.content, a.alias)))
ORDER BY e.id
"""
_RELATIONS = f"""
SELECT v.type AS relation, s.name AS source, {_type("s")} AS source_type, t.name AS target, {_type("t")} AS target_type, v.subtype, v.weight,
    v.confidence, v.method, v.validation_status, v.valid_from, v.valid_to, v.notes, v.created_at, coalesce(y.directed, 1) AS directed, s.id, t.id
FROM relation_evidence v JOIN entities s ON s.id = v.source JOIN entities t ON t.id = v.target
LEFT JOIN relation_types y ON y.name = v.type
WHERE v.memory IS NULL AND (v.validation_status <> 'rejected' OR NOT EXISTS (
    SELECT 1 FROM entities p JOIN relation_evidence o ON o.source = p.id AND o.type = v.type JOIN entities q ON q.id = o.target
    JOIN memories m ON m.id = o.memory WHERE coalesce(p.merged_into, p.id) = coalesce(s.merged_into, s.id)
    AND coalesce(q.merged_into, q.id) = coalesce(t.merged_into, t.id) AND {STAYS}))
ORDER BY v.id
"""
_MERGES = f"""
SELECT g.name AS merged_entity, {_type("g")} AS type, k.name AS into_entity, {_type("k")} AS into_type, x.reason, x.merged_at, x.undone_at, g.id, k.id
FROM entity_merges x JOIN entities k ON k.id = x.kept JOIN entities g ON g.id = x.merged ORDER BY x.id
"""
_DISTINCTIONS = f"""
SELECT a.name AS distinct_entity, {_type("a")} AS type, b.name AS from_entity, {_type("b")} AS from_type, d.reason, d.decided_at, a.id, b.id
FROM entity_distinctions d JOIN entities a ON a.id = d.one JOIN entities b ON b.id = d.other
"""
_LEAVES = f"SELECT m.id, m.key FROM memories m WHERE NOT {STAYS}"
_LINKS = f"""
WITH leaves AS ({_LEAVES})
SELECT l.type AS link, s.key AS source, t.key AS target, l.weight, l.confidence, l.method, l.created_at
FROM memory_links l JOIN leaves s ON s.id = l.source JOIN leaves t ON t.id = l.target
WHERE l.method NOT IN (SELECT value FROM json_each(?3)) ORDER BY l.source, l.target, l.type
"""
_MERGED_MEMORIES = f"""
WITH leaves AS ({_LEAVES})
SELECT g.key AS merged_memory, g.into_key AS into_memory FROM merges g JOIN leaves a ON a.key = g.key JOIN leaves b ON b.key = g.into_key
ORDER BY a.id
"""


def type_rows(connection: apsw.Connection) -> Iterator[Row]:
    """The types of somebody's own."""
    yield from _rows(
        connection.execute(
            "SELECT name AS entity_type, display_name, description, color FROM entity_types WHERE user_defined ORDER BY name"
        )
    )
    for row in _rows(
        connection.execute(
            "SELECT name AS relation_type, display_name, description, directed FROM relation_types WHERE user_defined ORDER BY name"
        )
    ):
        yield {**row, "directed": bool(row["directed"])}


def entity_rows(connection: apsw.Connection, deleted: bool, secret: bool) -> Iterator[Row]:
    """Whoever has something that no text tells, is an end of such, or is called as somebody else is. `deleted`, `secret`: whether memories leave that are."""
    who = _Who(connection, deleted, secret)
    pairs: list[Any] = connection.execute(
        "SELECT kept, merged FROM entity_merges UNION SELECT one, other FROM entity_distinctions"
    ).fetchall()
    judged = sorted({entity for pair in pairs if who.all_leave(pair) for entity in pair})
    for row in _rows(connection.execute(_TOLD, (json.dumps(judged),)), who, ("entity",)):
        held = who.held.get(row.pop("id"), set())
        yield {
            **row,
            "aliases": [alias for alias in json.loads(row["aliases"]) if alias not in {row["entity"], *held}] or None,
            # An empty list says that nobody put any down, none that nobody knows.
            "names_by_hand": None if row["made_by"] == "text" else [name for name in json.loads(row["names_by_hand"]) if name not in held],
            "type_by_hand": bool(row["type_by_hand"]) or None,
            "former_types": json.loads(row["former_types"]) or None,
            "attributes": json.loads(row["attributes"]) if row["attributes"] else None,
        }


def stated_rows(connection: apsw.Connection, deleted: bool, secret: bool) -> Iterator[Row]:
    """Relations that somebody stated or took back outside of any memory, who was made one with whom and who is not, links of memories that
    nothing derives, and which memory was merged into which."""
    who = _Who(connection, deleted, secret)
    for row in _rows(connection.execute(_RELATIONS, (deleted, secret)), who, ("source", "target")):
        yield _in_order_of_names(row)
    yield from _rows(connection.execute(_MERGES), who, ("merged_entity", "into_entity"))
    apart = _rows(connection.execute(_DISTINCTIONS), who, ("distinct_entity", "from_entity"))
    yield from sorted(map(_apart, apart), key=lambda row: (row["decided_at"], row["distinct_entity"], row["from_entity"], row["type"]))
    yield from _rows(connection.execute(_LINKS, (deleted, secret, json.dumps(DERIVED))))
    yield from _rows(connection.execute(_MERGED_MEMORIES, (deleted, secret)))


def _in_order_of_names(row: Row) -> Row:
    """The ends of a relation without a direction stand in the database in an order that is not the same elsewhere."""
    ends = [(row["source"], row["source_type"]), (row["target"], row["target_type"])]
    if not row.pop("directed"):
        ends.sort()
    (source, source_type), (target, target_type) = ends
    return {**row, "source": source, "source_type": source_type, "target": target, "target_type": target_type}


def _apart(row: Row) -> Row:
    """Two of whom neither comes first, in the order of their names: their numbers are others elsewhere."""
    (one, type_), (other, other_type) = sorted([(row["distinct_entity"], row["type"]), (row["from_entity"], row["from_type"])])
    return {**row, "distinct_entity": one, "type": type_, "from_entity": other, "from_type": other_type}


class _Who:
    """Of whom something leaves, and by what name: the first of its names that not only a memory which stays here holds."""

    def __init__(self, connection: apsw.Connection, deleted: bool, secret: bool) -> None:
        self._hidden, self.held = (
            visibility.entities_withheld_from_export(connection, deleted, secret),
            visibility.names_withheld_from_export(connection, deleted, secret),
        )
        self._called = visibility.replacement_names(connection, self.held)

    def all_leave(self, entities: Iterable[int]) -> bool:
        return self._hidden.isdisjoint(entities)

    def name(self, entity: int, name: str) -> str:
        return self._called.get(entity, name)


def _rows(cursor: apsw.Cursor, who: _Who | None = None, ends: Sequence[str] = ()) -> Iterator[Row]:
    """The rows by their columns' names. `ends` are those that name entities, whose numbers are the last columns, in the same order: a row
    of somebody of whom nothing leaves is left out."""
    names: list[str] = []
    for row in cursor:
        names = names or [column[0] for column in cursor.get_description()]
        told = len(row) - len(ends)
        ids = row[told:]
        if who is None or who.all_leave(ids):
            said = dict(zip(names[:told], row[:told], strict=True))
            yield {**said, **{end: who.name(id_, said[end]) for end, id_ in zip(ends, ids, strict=True) if who}}


PAGE = 500
# The names that a memory which may leave holds: of everybody whom it mentions.
_SAID = f"""
SELECT coalesce(e.merged_into, e.id), a.alias FROM entity_mentions em JOIN memories m ON m.id = em.memory AND NOT {STAYS}
JOIN entities e ON e.id = em.entity JOIN entity_aliases a ON a.entity = e.id WHERE instr(m.content, a.alias) GROUP BY 1, 2 ORDER BY 1, a.id
"""
_STATED = f"""
SELECT coalesce(s.merged_into, s.id), coalesce(t.merged_into, t.id), v.type FROM relation_evidence v JOIN entities s ON s.id = v.source
JOIN entities t ON t.id = v.target LEFT JOIN memories m ON m.id = v.memory
WHERE iif(v.memory IS NULL, v.validation_status <> 'rejected', NOT {STAYS}) GROUP BY 1, 2, 3
"""


@dataclass(frozen=True, slots=True)
class ExportFilter:
    """What may leave where something may not: the names of each entity that are told, and the relations, as (source, target, type)."""

    said: dict[int, list[str]]
    stated: frozenset[tuple[int, int, str]]
    ends: frozenset[int]
    by_hand: frozenset[int]
    held: Mapping[int, Set[str]]

    def entity(self, entity: Entity) -> Entity | None:
        """The entity without the names that only secret memories have; None where nothing else speaks of it."""
        said = self.said.get(entity.id, [])
        if entity.id in self.by_hand:
            return self._without(entity, self.held.get(entity.id, set()) - {*said})
        if not said and entity.id not in self.ends:
            return None
        name = said[0] if said and entity.name not in said else entity.name
        return replace(
            entity, name=name, aliases=tuple(alias for alias in said if alias != name), merged_names=(), description=None, attributes={}
        )

    def _without(self, entity: Entity, held: Set[str]) -> Entity:
        if held.isdisjoint((entity.name, *entity.aliases, *entity.merged_names)):
            return entity
        names = [name for name in (entity.name, *entity.aliases, *entity.merged_names) if name not in held] or [entity.name]
        return replace(entity, name=names[0], aliases=tuple(names[1:]), merged_names=())

    def relation(self, relation: Relation) -> Relation | None:
        """The relation, if something else than secret memories speaks for it, without what may be theirs."""
        ways = [(relation.source, relation.target), *([] if relation.directed else [(relation.target, relation.source)])]
        if any((*way, relation.type) in self.stated for way in ways):
            return replace(relation, subtype=None, valid_from=None, valid_to=None, notes=None)
        return None


def export_filter(connection: apsw.Connection) -> ExportFilter | None:
    """None where no memory is secret, not even in the trash, so that everything may leave."""
    if not secret_count(connection, include_deleted=True):
        return None
    nothing_else = (False, False)
    said: dict[int, list[str]] = {}
    for entity, alias in connection.execute(_SAID, nothing_else):
        said.setdefault(entity, []).append(alias)
    stated = frozenset((source, target, type_) for source, target, type_ in connection.execute(_STATED, nothing_else))
    hidden = visibility.entities_withheld_from_export(connection, *nothing_else)
    by_hand = frozenset(row[0] for row in connection.execute("SELECT id FROM entities WHERE made_by <> 'text'")) - hidden
    ends = frozenset(end for source, target, _ in stated for end in (source, target))
    return ExportFilter(said, stated, ends, by_hand, _held(connection, hidden))


def _held(connection: apsw.Connection, hidden: Set[int]) -> dict[int, set[str]]:
    """The names of each, with what is merged into it, that stay; all names of those of whom nothing leaves."""
    names = visibility.names_withheld_from_export(connection, deleted=False, secret=False)
    merged: dict[int, int] = dict(connection.execute("SELECT id, merged_into FROM entities WHERE merged_into IS NOT NULL"))
    for entity in hidden & merged.keys():
        known = connection.execute("SELECT alias FROM entity_aliases WHERE entity = ?", (entity,))
        names.setdefault(entity, set()).update(alias for (alias,) in known)
    held: dict[int, set[str]] = {}
    for entity, found in names.items():
        held.setdefault(merged.get(entity, entity), set()).update(found)
    return held


def entities_after(connection: apsw.Connection, last: int) -> list[Entity]:
    """The next page of those that are there, in the order in which they became known."""
    rows = connection.execute(f"SELECT e.id FROM entities e WHERE e.id > ? AND {PRESENT} ORDER BY e.id LIMIT ?", (last, PAGE))
    found = graph_entities.by_ids(connection, [int(row[0]) for row in rows])
    return sorted(lookup.visible(connection, list(found.values())), key=lambda entity: entity.id)


def relations_after(connection: apsw.Connection, last: tuple[int, int, str]) -> list[Relation]:
    """The next page of them, by source, target and type."""
    rows = connection.execute(
        f"SELECT {RELATION} FROM relations r WHERE (r.source, r.target, r.type) > (?, ?, ?) ORDER BY r.source, r.target, r.type LIMIT ?",
        (*last, PAGE),
    )
    return [relation_of(row) for row in rows.fetchall()]
