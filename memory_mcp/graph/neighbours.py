"""Whom an entity is related to, within a few hops, the nearest first."""

from collections.abc import Sequence
from dataclasses import dataclass

import apsw

from memory_mcp.errors import EntityNotFound
from memory_mcp.store.graph import entities, hops
from memory_mcp.store.graph.entities import Entity
from memory_mcp.store.graph.hops import Step

DECAY = 0.8
SUGGESTIONS = 5


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


def known_as(connection: apsw.Connection, name: str) -> Sequence[Entity]:
    """The entities of that name or id, most mentioned first.

    Raises:
        EntityNotFound: nobody is called so; says who is called alike.
    """
    found = entities.by_entity_id(connection, name) or entities.by_name(connection, name)
    if not found:
        alike = entities.alike(connection, name, SUGGESTIONS)
        known = f"known are {', '.join(entity.name for entity in alike)}" if alike else "no name is like it"
        raise EntityNotFound(f"nobody and nothing is called {name[:80]!r}", known, "Take a name from a memory, or look at graph_snapshot")
    return found


def neighbours(
    connection: apsw.Connection, name: str, depth: int = 1, types: Sequence[str] = (), min_confidence: float = 0.0, limit: int = 20
) -> Neighbourhood:
    """The entities within `depth` hops of the one of that name.

    Raises:
        EntityNotFound: nobody is called so.
    """
    centre, *namesakes = known_as(connection, name)
    nearness: dict[int, float] = {centre.id: 1.0}
    reached: dict[int, tuple[int, float, Step]] = {}
    frontier = [centre.id]
    for distance in range(1, min(depth, hops.HOPS_LIMIT) + 1):
        coming: dict[int, tuple[int, float, Step]] = {}
        for step in hops.steps_from(connection, frontier, types, min_confidence):
            near = nearness[step.here] * DECAY * step.weight
            if step.there not in nearness and near > (coming[step.there][1] if step.there in coming else 0.0):
                coming[step.there] = (distance, near, step)
        nearness |= {entity: near for entity, (_, near, _) in coming.items()}
        reached |= coming
        frontier = list(coming)
        if not frontier:
            break
    order = sorted(reached.items(), key=lambda item: (item[1][0], -item[1][1], item[0]))
    shown = order[:limit]
    met = {entity for entity, _ in shown} | {step.here for _, (_, _, step) in shown}
    known = entities.by_ids(connection, met)
    found = tuple(Neighbour(known[entity], distance, round(near, 4), step) for entity, (distance, near, step) in shown)
    named = {entity.id: entity.name for entity in (*known.values(), centre)}
    return Neighbourhood(centre, found, named, more=len(order) - len(shown), namesakes=tuple(namesakes))
