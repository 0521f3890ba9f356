"""A picture of the graph: the most connected entities, or those around some of them, and their relations, for vis.js or as plain JSON."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo

import apsw

from memory_mcp.extras import require
from memory_mcp.features.graph.views import entity_view
from memory_mcp.server.views import omit_empty
from memory_mcp.store.graph import neighbors, overview
from memory_mcp.store.graph.entities import lookup, records
from memory_mcp.store.graph.entities.records import Entity
from memory_mcp.store.graph.neighbors import Rules
from memory_mcp.store.graph.overview import Relation

DEFAULT_COLOR = "#adb5bd"
WIDTH, HEIGHT = 1_000, 800
SEED, ITERATIONS, HOLD = 7, 60, 0.3
# Each iteration looks at all pairs: with many entities there are fewer.
STEPS = 20_000

Places = Mapping[int, tuple[int, int]]


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
    entities_in_all, relations_in_all = overview.counts(connection)
    return Snapshot(
        entities=tuple(shown),
        relations=tuple(relations),
        colors=overview.colors(connection),
        entities_in_all=entities_in_all,
        relations_in_all=relations_in_all,
        around=tuple(dict.fromkeys(starts)),
    )


def _nearest(connection: apsw.Connection, starts: Sequence[int], limit: int, section: Section) -> list[Entity]:
    """The entities to start from, then those that are reached from them along relations of the section, the nearest first."""
    reached = neighbors.reached(connection, dict.fromkeys(starts, 1.0), section.depth, Rules(section.relation_types), limit=limit)
    near = [entity for entity, how in reached.items() if how.via.weight >= section.min_weight]
    known = records.by_ids(connection, [*starts, *near])
    of_types = [known[id_] for id_ in near if not section.types or known[id_].type in section.types]
    return [*(known[id_] for id_ in dict.fromkeys(starts)), *of_types][:limit]


def places(snapshot: Snapshot) -> Places:
    """The place of each entity, by its id, in a frame of `WIDTH` by `HEIGHT`: a force-directed layout, the same for the same graph.

    Raises:
        NotInstalled: the extra `graph` is not installed.
    """
    require("graph", "the graph can't be drawn")
    import rustworkx  # noqa: PLC0415  the start of the server does without it

    graph = rustworkx.PyGraph(multigraph=False)
    nodes = dict(zip((entity.id for entity in snapshot.entities), graph.add_nodes_from(list(snapshot.entities)), strict=True))
    graph.add_edges_from([(nodes[relation.source], nodes[relation.target], relation.weight) for relation in snapshot.relations])
    # Parts that nothing connects would drift out of sight: a point that is not drawn holds them together.
    hub = graph.add_node(None)
    graph.add_edges_from([(hub, min(part), HOLD) for part in rustworkx.connected_components(graph) if hub not in part])
    layout = rustworkx.spring_layout(graph, seed=SEED, num_iter=min(ITERATIONS, STEPS // len(graph)), weight_fn=float)
    xs = _scaled((layout[node][0] for node in nodes.values()), WIDTH)
    ys = _scaled((layout[node][1] for node in nodes.values()), HEIGHT)
    return dict(zip(nodes, zip(xs, ys, strict=True), strict=True))


def _scaled(values: Iterable[float], size: int) -> list[int]:
    values = list(values)
    low, span = min(values, default=0.0), max(values, default=0.0) - min(values, default=0.0)
    return [round(size * ((value - low) / span if span else 0.5)) for value in values]


def snapshot_view(snapshot: Snapshot, form: str, zone: ZoneInfo, positions: Places | None = None) -> dict[str, Any]:
    """Return the snapshot, as `vis` (nodes and edges for vis.js) or `json` (entities and relations with all that is known); `places` are
    where its entities are drawn.
    """
    ids = {entity.id: entity.entity_id for entity in snapshot.entities}
    totals = {
        **omit_empty(around=[ids[entity] for entity in snapshot.around if entity in ids]),
        "entities_in_all": snapshot.entities_in_all,
        "relations_in_all": snapshot.relations_in_all,
    }
    if form == "json":
        named = {entity.id: entity.name for entity in snapshot.entities}
        return {
            "entities": [{**entity_view(entity, zone), **_position(entity, positions)} for entity in snapshot.entities],
            "relations": [relation_view(relation, named) for relation in snapshot.relations],
            **totals,
        }
    return {
        "nodes": [
            {
                "id": entity.entity_id,
                "label": entity.name,
                "group": entity.type,
                "color": snapshot.colors.get(entity.type, DEFAULT_COLOR),
                "value": entity.extraction_count,
                **_position(entity, positions),
            }
            for entity in snapshot.entities
        ],
        "edges": [
            {
                "from": ids[relation.source],
                "to": ids[relation.target],
                "label": relation.type,
                "value": relation.weight,
                **({"arrows": "to"} if relation.directed else {}),
                **omit_empty(valid_from=relation.valid_from, valid_to=relation.valid_to),
            }
            for relation in snapshot.relations
        ],
        **totals,
    }


def _position(entity: Entity, positions: Places | None) -> dict[str, int]:
    return dict(zip(("x", "y"), positions[entity.id], strict=True)) if positions else {}


def relation_view(relation: Relation, named: Mapping[int, str]) -> dict[str, Any]:
    """Return a relation with its evidence."""
    return omit_empty(
        source=named[relation.source],
        type=relation.type,
        target=named[relation.target],
        subtype=relation.subtype,
        direction="one way" if relation.directed else "both ways",
        weight=relation.weight,
        evidence_count=relation.evidence_count,
        confidence=relation.confidence,
        valid_from=relation.valid_from,
        valid_to=relation.valid_to,
        method=relation.method,
        validation_status=relation.validation_status,
        notes=relation.notes,
    )
