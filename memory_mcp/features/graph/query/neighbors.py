"""The neighbors of an entity within a few hops, the nearest first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import apsw

from memory_mcp.store.graph import neighbors
from memory_mcp.store.graph.entities import records
from memory_mcp.store.graph.entities.lookup import find_all
from memory_mcp.store.graph.entities.records import Entity
from memory_mcp.store.graph.neighbors import Rules, Step


@dataclass(frozen=True, slots=True)
class Neighbor:
    """An entity `distance` hops away. `nearness`: 0 to 1. `via`: the relation that leads to it. `more_relations`: the number of others
    between the same two entities.
    """

    entity: Entity
    distance: int
    nearness: float
    via: Step
    more_relations: int = 0


@dataclass(frozen=True, slots=True)
class Neighborhood:
    """The neighbors of `entity`. `more`: how many did not fit. `namesakes`: others of the same name. `types_there`: without neighbors,
    the number of the entity's relations by type.
    """

    entity: Entity
    neighbors: tuple[Neighbor, ...]
    named: dict[int, str]
    more: int = 0
    namesakes: tuple[Entity, ...] = ()
    types_there: Mapping[str, int] = field(default_factory=dict)


def find_neighbors(
    connection: apsw.Connection, name: str, depth: int = 1, types: Sequence[str] = (), min_confidence: float = 0.0, limit: int = 20
) -> Neighborhood:
    """The entities within `depth` hops of the one of that name.

    Raises:
        EntityNotFound: no entity has the name.
    """
    center, *namesakes = find_all(connection, name)
    rules = Rules(types, min_confidence)
    shown, more = neighbors.nearest(connection, center.id, depth, rules, limit=limit)
    further = neighbors.further(connection, [reached.via for reached in shown.values()], rules)
    known = records.by_ids(connection, shown.keys() | {reached.via.here for reached in shown.values()})
    neighborhood = tuple(
        Neighbor(
            known[entity], reached.distance, round(reached.nearness, 4), reached.via, further.get((reached.via.here, reached.via.there), 0)
        )
        for entity, reached in shown.items()
    )
    named = {entity.id: entity.name for entity in (*known.values(), center)}
    there = {} if neighborhood else neighbors.types_at(connection, center.id)
    return Neighborhood(center, neighborhood, named, more=more, namesakes=tuple(namesakes), types_there=there)
