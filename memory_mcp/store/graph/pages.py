"""The graph as it leaves: entities and relations page by page. What only secret memories speak of stays, unless it is asked for."""

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace

import apsw

from memory_mcp.store.graph import entities, staying, telling
from memory_mcp.store.graph.entities import Entity
from memory_mcp.store.graph.overview import PRESENT, RELATION, Relation, relation_of
from memory_mcp.store.graph.staying import STAYS
from memory_mcp.store.memories import secret_count

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
class Open:
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


def what_is_open(connection: apsw.Connection) -> Open | None:
    """None where no memory is secret, not even in the trash, so that everything may leave."""
    if not secret_count(connection, include_deleted=True):
        return None
    nothing_else = (False, False)
    said: dict[int, list[str]] = {}
    for entity, alias in connection.execute(_SAID, nothing_else):
        said.setdefault(entity, []).append(alias)
    stated = frozenset((source, target, type_) for source, target, type_ in connection.execute(_STATED, nothing_else))
    hidden = staying.hidden(connection, *nothing_else)
    by_hand = frozenset(row[0] for row in connection.execute("SELECT id FROM entities WHERE made_by <> 'text'")) - hidden
    ends = frozenset(end for source, target, _ in stated for end in (source, target))
    return Open(said, stated, ends, by_hand, _held(connection, hidden))


def _held(connection: apsw.Connection, hidden: Set[int]) -> dict[int, set[str]]:
    """The names of each, with what is merged into it, that stay; all names of those of whom nothing leaves."""
    names = staying.held_names(connection, deleted=False, secret=False)
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
    found = entities.by_ids(connection, [int(row[0]) for row in rows])
    return sorted(telling.told(connection, list(found.values())), key=lambda entity: entity.id)


def relations_after(connection: apsw.Connection, last: tuple[int, int, str]) -> list[Relation]:
    """The next page of them, by source, target and type."""
    rows = connection.execute(
        f"SELECT {RELATION} FROM relations r WHERE (r.source, r.target, r.type) > (?, ?, ?) ORDER BY r.source, r.target, r.type LIMIT ?",
        (*last, PAGE),
    )
    return [relation_of(row) for row in rows.fetchall()]
