"""Exporting the graph: rows of what persons stated, since texts are read again by an import; and the whole graph in pages, for graph files.

An export leaves out entities, names and rejections that only memories support which it leaves out.
"""

import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

import apsw

from memory_mcp.store.graph import visibility
from memory_mcp.store.graph.entities import lookup, records, type_history
from memory_mcp.store.graph.entities.records import Entity
from memory_mcp.store.graph.memory_links import DERIVED
from memory_mcp.store.graph.overview import RELATION, Relation, relation_of
from memory_mcp.store.graph.visibility import BY_HAND, MEMORY_HIDDEN, PRESENT
from memory_mcp.store.memories import secret_count
from memory_mcp.store.sqlite.reading import grouped

Row = dict[str, Any]
# Entities or relations of a page.
PAGE = 500


def _type(entity: str) -> str:
    """The type of an entity before any merge: merges are exported, too."""
    return records.OWN_TYPE.format(e=entity)


_ALIASES = """
SELECT json_group_array(alias) FROM (SELECT a.alias FROM entity_aliases a WHERE a.entity = e.id {} ORDER BY a.alias)
"""
_ENTITIES = f"""
SELECT e.name AS entity, {_type("e")} AS type, e.subtype, ({_ALIASES.format("")}) AS aliases, ({_ALIASES.format("AND a.by_hand")}) AS names_by_hand, e.description, e.attributes, e.importance, e.confidence, e.made_by,
    iif(e.type_from IS 'hand', 1, NULL) AS type_by_hand, {type_history.FORMER} AS former_types, e.entity_id, e.created_at, e.id AS id, e.id
FROM entities e WHERE e.made_by <> 'text' OR e.description IS NOT NULL OR e.attributes IS NOT NULL
    OR e.id IN (SELECT source FROM ({BY_HAND}) UNION SELECT target FROM ({BY_HAND}))
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
    AND coalesce(q.merged_into, q.id) = coalesce(t.merged_into, t.id) AND {MEMORY_HIDDEN}))
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
_EXPORTED = f"SELECT m.id, m.key FROM memories m WHERE NOT {MEMORY_HIDDEN}"
_LINKS = f"""
WITH exported AS ({_EXPORTED})
SELECT l.type AS link, s.key AS source, t.key AS target, l.weight, l.confidence, l.method, l.created_at
FROM memory_links l JOIN exported s ON s.id = l.source JOIN exported t ON t.id = l.target
WHERE l.type = 'newer' OR l.method NOT IN (SELECT value FROM json_each(?3)) ORDER BY l.source, l.target, l.type
"""
_MERGED_MEMORIES = f"""
WITH exported AS ({_EXPORTED})
SELECT g.key AS merged_memory, g.into_key AS into_memory FROM merges g JOIN exported a ON a.key = g.key JOIN exported b ON b.key = g.into_key
ORDER BY a.id
"""
# The names of an entity that exported memories contain which mention it.
_EXPORTED_NAMES = f"""
SELECT coalesce(e.merged_into, e.id), a.alias FROM entity_mentions em JOIN memories m ON m.id = em.memory AND NOT {MEMORY_HIDDEN}
JOIN entities e ON e.id = em.entity JOIN entity_aliases a ON a.entity = e.id WHERE instr(m.content, a.alias) GROUP BY 1, 2 ORDER BY 1, a.id
"""
_EXPORTED_RELATIONS = f"""
SELECT coalesce(s.merged_into, s.id), coalesce(t.merged_into, t.id), v.type FROM relation_evidence v JOIN entities s ON s.id = v.source
JOIN entities t ON t.id = v.target LEFT JOIN memories m ON m.id = v.memory
WHERE iif(v.memory IS NULL, v.validation_status <> 'rejected', NOT {MEMORY_HIDDEN}) GROUP BY 1, 2, 3
"""


def type_rows(connection: apsw.Connection) -> Iterator[Row]:
    """The types that users added."""
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


def withheld_rows(connection: apsw.Connection, deleted: bool, secret: bool) -> int:
    """The number of rows about entities that the export leaves out because only memories support them which it leaves out."""
    if connection.execute(f"SELECT 1 FROM memories m WHERE {MEMORY_HIDDEN} LIMIT 1", (deleted, secret)).get is None:
        return 0
    exported = _Exported(connection, deleted, secret)
    for rows in (entity_rows(connection, deleted, secret, exported), stated_rows(connection, deleted, secret, exported)):
        deque(rows, maxlen=0)
    return exported.rows_withheld


def entity_rows(connection: apsw.Connection, deleted: bool, secret: bool, exported: "_Exported | None" = None) -> Iterator[Row]:
    """Entities with anything that texts don't contain, that rows of `stated_rows` refer to, or that share a name. `deleted` and `secret`
    are whether the export contains the trash and secret memories.
    """
    exported = exported or _Exported(connection, deleted, secret)
    pairs: list[Any] = connection.execute(
        "SELECT kept, merged FROM entity_merges UNION SELECT one, other FROM entity_distinctions"
    ).fetchall()
    in_pairs = sorted({entity for pair in pairs if exported.contains(pair) for entity in pair})
    for row in _rows(connection.execute(_ENTITIES, (json.dumps(in_pairs),)), exported, ("entity",)):
        withheld = exported.withheld_names.get(row.pop("id"), set())
        names_by_hand = [name for name in json.loads(row["names_by_hand"]) if name not in withheld]
        yield {
            **row,
            "aliases": [alias for alias in json.loads(row["aliases"]) if alias not in {row["entity"], *withheld}] or None,
            # An empty list means that no person wrote one, a missing one that this isn't known.
            "names_by_hand": None if row["made_by"] == "text" else names_by_hand,
            "type_by_hand": bool(row["type_by_hand"]) or None,
            "former_types": json.loads(row["former_types"]) or None,
            "attributes": json.loads(row["attributes"]) if row["attributes"] else None,
        }


def stated_rows(connection: apsw.Connection, deleted: bool, secret: bool, exported: "_Exported | None" = None) -> Iterator[Row]:
    """Relations that persons stated or rejected, merges of entities and distinct ones, links that aren't derived, and merges of
    memories.
    """
    exported = exported or _Exported(connection, deleted, secret)
    for row in _rows(connection.execute(_RELATIONS, (deleted, secret)), exported, ("source", "target")):
        yield row if row.pop("directed") else _ordered(row, "source", "source_type", "target", "target_type")
    yield from _rows(connection.execute(_MERGES), exported, ("merged_entity", "into_entity"))
    distinct = _rows(connection.execute(_DISTINCTIONS), exported, ("distinct_entity", "from_entity"))
    yield from sorted(
        (_ordered(row, "distinct_entity", "type", "from_entity", "from_type") for row in distinct),
        key=lambda row: (row["decided_at"], row["distinct_entity"], row["from_entity"], row["type"]),
    )
    yield from _rows(connection.execute(_LINKS, (deleted, secret, json.dumps(DERIVED))))
    yield from _rows(connection.execute(_MERGED_MEMORIES, (deleted, secret)))


def _ordered(row: Row, first: str, first_type: str, second: str, second_type: str) -> Row:
    """Sorts the two ends of a row by name: the order of their ids isn't the same in another database."""
    one, other = sorted([(row[first], row[first_type]), (row[second], row[second_type])])
    return {**row, first: one[0], first_type: one[1], second: other[0], second_type: other[1]}


class _Exported:
    """Which entities an export contains, and by which name."""

    def __init__(self, connection: apsw.Connection, deleted: bool, secret: bool) -> None:
        self._withheld = visibility.entities_withheld_from_export(connection, deleted, secret)
        self.withheld_names = visibility.names_withheld_from_export(connection, deleted, secret)
        self._replacements = visibility.replacement_names(connection, self.withheld_names)

        self.rows_withheld = 0

    def contains(self, entities: Iterable[int]) -> bool:
        return self._withheld.isdisjoint(entities)

    def name(self, entity: int, name: str) -> str:
        return self._replacements.get(entity, name)


def _rows(cursor: apsw.Cursor, exported: _Exported | None = None, ends: Sequence[str] = ()) -> Iterator[Row]:
    """The rows as dicts. `ends` are the columns with names of entities, whose ids are the last columns in the same order; rows of entities
    that the export doesn't contain are left out."""
    columns: list[str] = []
    for values in cursor:
        columns = columns or [column[0] for column in cursor.get_description()]
        width = len(values) - len(ends)
        ids = values[width:]
        if exported is None or exported.contains(ids):
            row = dict(zip(columns[:width], values[:width], strict=True))
            yield {**row, **{end: exported.name(id_, row[end]) for end, id_ in zip(ends, ids, strict=True) if exported}}
        else:
            exported.rows_withheld += 1


@dataclass(frozen=True, slots=True)
class ExportFilter:
    """What an export without secret memories contains: the names of each entity in its memories, the relations as (source, target, type)
    with their ends, the entities by hand, and the names that it leaves out."""

    names: dict[int, list[str]]
    relations: frozenset[tuple[int, int, str]]
    ends: frozenset[int]
    by_hand: frozenset[int]
    withheld: Mapping[int, Set[str]]

    def entity(self, entity: Entity) -> Entity | None:
        """The entity without names that only secret memories contain; None where only they support it."""
        names = self.names.get(entity.id, [])
        if entity.id in self.by_hand:
            own, withheld = (entity.name, *entity.aliases, *entity.merged_names), self.withheld.get(entity.id, set()) - {*names}
            if withheld.isdisjoint(own):
                return entity
            first, *others = [name for name in own if name not in withheld] or [entity.name]
            return replace(entity, name=first, aliases=tuple(others), merged_names=())
        if not names and entity.id not in self.ends:
            return None
        name = names[0] if names and entity.name not in names else entity.name
        return replace(
            entity, name=name, aliases=tuple(alias for alias in names if alias != name), merged_names=(), description=None, attributes={}
        )

    def relation(self, relation: Relation) -> Relation | None:
        """The relation without details that may come from secret memories; None where only they support it."""
        directions = [(relation.source, relation.target), *([] if relation.directed else [(relation.target, relation.source)])]
        if any((*ends, relation.type) in self.relations for ends in directions):
            return replace(relation, subtype=None, valid_from=None, valid_to=None, notes=None)
        return None


def export_filter(connection: apsw.Connection) -> ExportFilter | None:
    """The filter of an export without secret memories; None where there are none, not even in the trash."""
    if not secret_count(connection, include_deleted=True):
        return None
    neither = (False, False)
    names = grouped(connection.execute(_EXPORTED_NAMES, neither))
    relations = frozenset((source, target, type_) for source, target, type_ in connection.execute(_EXPORTED_RELATIONS, neither))
    withheld = visibility.entities_withheld_from_export(connection, *neither)
    by_hand = frozenset(row[0] for row in connection.execute("SELECT id FROM entities WHERE made_by <> 'text'")) - withheld
    ends = frozenset(end for source, target, _ in relations for end in (source, target))
    return ExportFilter(names, relations, ends, by_hand, _withheld_names(connection, withheld))


def _withheld_names(connection: apsw.Connection, withheld: Set[int]) -> dict[int, set[str]]:
    """By entity, merged ones included, the names that the export leaves out; of withheld entities, all names."""
    names = visibility.names_withheld_from_export(connection, deleted=False, secret=False)
    merged: dict[int, int] = dict(connection.execute("SELECT id, merged_into FROM entities WHERE merged_into IS NOT NULL"))
    for entity in withheld & merged.keys():
        rows = connection.execute("SELECT alias FROM entity_aliases WHERE entity = ?", (entity,))
        names.setdefault(entity, set()).update(alias for (alias,) in rows)
    by_root: dict[int, set[str]] = {}
    for entity, aliases in names.items():
        by_root.setdefault(merged.get(entity, entity), set()).update(aliases)
    return by_root


def entities_after(connection: apsw.Connection, last: int) -> list[Entity]:
    """The next page of entities, by id."""
    rows = connection.execute(f"SELECT e.id FROM entities e WHERE e.id > ? AND {PRESENT} ORDER BY e.id LIMIT ?", (last, PAGE))
    entities = records.by_ids(connection, [int(row[0]) for row in rows])
    return sorted(lookup.visible(connection, entities.values()), key=lambda entity: entity.id)


def relations_after(connection: apsw.Connection, last: tuple[int, int, str]) -> list[Relation]:
    """The next page of relations, by source, target and type."""
    rows = connection.execute(
        f"SELECT {RELATION} FROM relations r WHERE (r.source, r.target, r.type) > (?, ?, ?) ORDER BY r.source, r.target, r.type LIMIT ?",
        (*last, PAGE),
    )
    return [relation_of(row) for row in rows.fetchall()]
