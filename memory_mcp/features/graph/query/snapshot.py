"""A snapshot of the graph: the most connected entities, or those around some of them, and their relations, for vis.js or as plain JSON."""

from collections.abc import Sequence
from dataclasses import dataclass

import apsw

from memory_mcp.store.graph import neighbors, overview
from memory_mcp.store.graph.entities import lookup, records
from memory_mcp.store.graph.entities.records import Entity
from memory_mcp.store.graph.neighbors import Rules
from memory_mcp.store.graph.overview import Relation


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Entities and the relations between them. `colors`: by type. `around`: the ids of those that the section is around. The totals
    count the whole graph.
    """

    entities: tuple[Entity, ...]
    relations: tuple[Relation, ...]
    colors: dict[str, str]
    entities_in_all: int
    relations_in_all: int
    around: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """The part of the graph that is shown: entities of these `types`, relations of these `relation_types` and of at least `min_weight`;
    all where none is given. `around` are names or ids: then only these entities and what is at most `depth` hops from one of them.
    """

    types: Sequence[str] = ()
    relation_types: Sequence[str] = ()
    min_weight: float = 0.0
    around: Sequence[str] = ()
    depth: int = 1


def snapshot(connection: apsw.Connection, limit: int = 50, section: Section = Section()) -> Snapshot:
    """The `limit` most connected entities of the section, or the nearest ones, and the relations among them.

    Raises:
        EntityNotFound: no entity has one of the names.
    """
    starts = [lookup.find_all(connection, name)[0].id for name in section.around]
    near = _nearest(connection, starts, limit, section) if starts else overview.most_connected(connection, limit, section.types)
    shown = lookup.visible(connection, near)
    relations = overview.relations_among(connection, [entity.id for entity in shown], limit * 4, section.relation_types, section.min_weight)
    if section.relation_types or section.min_weight:
        kept = {*starts, *(end for relation in relations for end in (relation.source, relation.target))}
        shown = [entity for entity in shown if entity.id in kept]
    counted = overview.counts(connection)
    return Snapshot(
        entities=tuple(shown),
        relations=tuple(relations),
        colors=overview.colors(connection),
        entities_in_all=counted.entities,
        relations_in_all=counted.relations,
        around=tuple(dict.fromkeys(starts)),
    )


def _nearest(connection: apsw.Connection, starts: Sequence[int], limit: int, section: Section) -> list[Entity]:
    """The entities to start from, then those that are reached from them along relations of the section, the nearest first."""
    reached = neighbors.reached(connection, dict.fromkeys(starts, 1.0), section.depth, Rules(section.relation_types), limit=limit)
    near = [entity for entity, how in reached.items() if how.via.weight >= section.min_weight]
    known = records.by_ids(connection, [*starts, *near])
    of_types = [known[id_] for id_ in near if not section.types or known[id_].type in section.types]
    return [*(known[id_] for id_ in dict.fromkeys(starts)), *of_types][:limit]
