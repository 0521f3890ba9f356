"""A snapshot of the graph: the most connected entities and their relations, for vis.js or as plain JSON."""

from collections.abc import Sequence
from dataclasses import dataclass

import apsw

from memory_mcp.store.graph import overview
from memory_mcp.store.graph.entities import lookup
from memory_mcp.store.graph.entities.records import Entity
from memory_mcp.store.graph.overview import Relation


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Entities and the relations between them. `colors`: by type. The totals count the whole graph."""

    entities: tuple[Entity, ...]
    relations: tuple[Relation, ...]
    colors: dict[str, str]
    entities_in_all: int
    relations_in_all: int


def snapshot(connection: apsw.Connection, limit: int = 50, types: Sequence[str] = ()) -> Snapshot:
    """The `limit` most connected entities, of these types if given, and the relations among them."""
    shown = lookup.visible(connection, overview.most_connected(connection, limit, types))
    counted = overview.counts(connection)
    return Snapshot(
        entities=tuple(shown),
        relations=tuple(overview.relations_among(connection, [entity.id for entity in shown], limit * 4)),
        colors=overview.colors(connection),
        entities_in_all=counted.entities,
        relations_in_all=counted.relations,
    )
