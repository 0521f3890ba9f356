"""The neighbors of an entity within a few hops, the nearest first."""

from collections.abc import Sequence
from typing import Any
from zoneinfo import ZoneInfo

import apsw

from memory_mcp.features.graph.views import counted, entity_view, step_view, unread_note
from memory_mcp.server.views import omit_empty
from memory_mcp.store.graph import neighbors
from memory_mcp.store.graph.entities import records
from memory_mcp.store.graph.entities.lookup import find_all
from memory_mcp.store.graph.entities.records import Entity
from memory_mcp.store.graph.neighbors import Rules
from memory_mcp.wording import clauses, sentence


def find_neighbors(
    connection: apsw.Connection,
    name: str,
    zone: ZoneInfo,
    depth: int = 1,
    types: Sequence[str] = (),
    min_confidence: float = 0.0,
    limit: int = 20,
) -> dict[str, Any]:
    """The view of the entity of that name and of those within `depth` hops. `nearness`: 0 to 1. `via`: the relation that leads to a neighbor.
    `more_relations`: the number of others between the same two. `more`: how many neighbors did not fit. `note`: why there is none.

    Raises:
        EntityNotFound: no entity has the name.
    """
    center, *namesakes = find_all(connection, name)
    rules = Rules(types, min_confidence)
    shown, more = neighbors.nearest(connection, center.id, depth, rules, limit=limit)
    steps = [reached.via for reached in shown.values()]
    further = neighbors.further(connection, steps, rules)
    known = {**records.by_ids(connection, shown.keys() | {step.here for step in steps}), center.id: center}
    named = {entity.id: entity.name for entity in known.values()}
    near = [
        {
            "name": known[entity].name,
            "type": known[entity].type,
            "distance": reached.distance,
            "nearness": round(reached.nearness, 4),
            "via": step_view(step, named),
            "weight": step.weight,
            "confidence": step.confidence,
            **omit_empty(valid_from=step.valid_from, valid_to=step.valid_to, more_relations=further.get((step.here, step.there)) or None),
        }
        for (entity, reached), step in zip(shown.items(), steps, strict=True)
    ]
    note = None if near else _why_none(connection, types, center)
    others = [entity_view(entity, zone) for entity in namesakes]
    return {"entity": entity_view(center, zone), "neighbors": near, **omit_empty(more=more or None, namesakes=others, note=note)}


def _why_none(connection: apsw.Connection, types: Sequence[str], entity: Entity) -> str | None:
    """Say why an entity has no neighbors along relations of these `types`, of any type if none is named: which types its relations have,
    or what background work may still add."""
    waiting = unread_note(connection, types)
    if waiting or not types:
        return waiting
    asked = sentence("along relations of the type {} nothing is reached", " or ".join(types)[:200])
    there = neighbors.types_at(connection, entity.id)
    rest = sentence("those of {} are of {}", entity.name, counted(there)) if there else sentence("{} has no relations yet", entity.name)
    return clauses([asked, rest])
