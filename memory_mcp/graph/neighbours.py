"""Whom an entity is related to, within a few hops, the nearest first."""

from collections.abc import Sequence
from dataclasses import dataclass

import apsw

from memory_mcp.store.graph import entities, hops
from memory_mcp.store.graph.entities import Entity, known_as
from memory_mcp.store.graph.hops import Step


@dataclass(frozen=True, slots=True)
class Neighbour:
    """An entity that is `distance` hops away. `nearness` runs from 0 to 1; `via` is the relation by which it is reached."""

    entity: Entity
    distance: int
    nearness: float
    via: Step


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """What stands around `entity`. `more` counts what did not fit; `namesakes` are others of the same name."""

    entity: Entity
    neighbours: tuple[Neighbour, ...]
    named: dict[int, str]
    more: int = 0
    namesakes: tuple[Entity, ...] = ()


def neighbours(
    connection: apsw.Connection, name: str, depth: int = 1, types: Sequence[str] = (), min_confidence: float = 0.0, limit: int = 20
) -> Neighbourhood:
    """The entities within `depth` hops of the one of that name.

    Raises:
        EntityNotFound: nobody is called so.
    """
    centre, *namesakes = known_as(connection, name)
    reached = hops.reached(connection, {centre.id: 1.0}, depth, types=types, min_confidence=min_confidence)
    shown = list(reached.items())[:limit]
    known = entities.by_ids(connection, {entity for entity, _ in shown} | {one.via.here for _, one in shown})
    found = tuple(Neighbour(known[entity], one.distance, round(one.nearness, 4), one.via) for entity, one in shown)
    named = {entity.id: entity.name for entity in (*known.values(), centre)}
    return Neighbourhood(centre, found, named, more=len(reached) - len(shown), namesakes=tuple(namesakes))
