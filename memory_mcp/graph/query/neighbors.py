"""Whom an entity is related to, within a few hops, the nearest first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import apsw

from memory_mcp.store.graph import neighbors
from memory_mcp.store.graph.entities import records
from memory_mcp.store.graph.entities.lookup import find_all
from memory_mcp.store.graph.entities.records import Entity
from memory_mcp.store.graph.neighbors import Rules, Step


@dataclass(frozen=True, slots=True)
class Neighbour:
    """An entity that is `distance` hops away. `nearness` runs from 0 to 1; `via` is the relation by which it is reached, and
    `more_relations` counts those that the same two have beside it."""

    entity: Entity
    distance: int
    nearness: float
    via: Step
    more_relations: int = 0


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """What stands around `entity`. `more` counts what did not fit, as far as the nearest of each hop lead; `namesakes` are others of the same name.
    `types_there`: where nobody was found, of which types the entity's relations are, and how many of each."""

    entity: Entity
    neighbours: tuple[Neighbour, ...]
    named: dict[int, str]
    more: int = 0
    namesakes: tuple[Entity, ...] = ()
    types_there: Mapping[str, int] = field(default_factory=dict)


def neighbours(
    connection: apsw.Connection, name: str, depth: int = 1, types: Sequence[str] = (), min_confidence: float = 0.0, limit: int = 20
) -> Neighbourhood:
    """The entities within `depth` hops of the one of that name.

    Raises:
        EntityNotFound: nobody is called so.
    """
    centre, *namesakes = find_all(connection, name)
    rules = Rules(types, min_confidence)
    shown, more = neighbors.nearest(connection, centre.id, depth, rules, limit=limit)
    further = neighbors.further(connection, [one.via for one in shown.values()], rules)
    known = records.by_ids(connection, shown.keys() | {one.via.here for one in shown.values()})
    found = tuple(
        Neighbour(known[entity], one.distance, round(one.nearness, 4), one.via, further.get((one.via.here, one.via.there), 0))
        for entity, one in shown.items()
    )
    named = {entity.id: entity.name for entity in (*known.values(), centre)}
    there = {} if found else neighbors.types_at(connection, centre.id)
    return Neighbourhood(centre, found, named, more=more, namesakes=tuple(namesakes), types_there=there)
