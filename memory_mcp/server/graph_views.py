"""What a client sees of the graph: names instead of numbers, relations as `A > works_on > B`, pictures as vis.js reads them."""

from collections.abc import Mapping, Sequence
from typing import Any
from zoneinfo import ZoneInfo

import apsw

from memory_mcp.graph.query.neighbors import Neighbour, Neighbourhood
from memory_mcp.graph.query.paths import Paths
from memory_mcp.graph.query.snapshot import Snapshot
from memory_mcp.server.views import local, told
from memory_mcp.store.graph import relation_queue
from memory_mcp.store.graph.entities.records import Entity
from memory_mcp.store.graph.neighbors import HOPS_LIMIT, Step
from memory_mcp.store.graph.overview import Relation
from memory_mcp.text.relation_notation import validity

DEFAULT_COLOR = "#adb5bd"


def entity_view(entity: Entity, zone: ZoneInfo) -> dict[str, Any]:
    """An entity with what is known of it."""
    return told(
        id=entity.entity_id,
        name=entity.name,
        type=entity.type,
        subtype=entity.subtype,
        aliases=[*entity.aliases, *(name for name in entity.merged_names if name not in entity.aliases)],
        description=entity.description,
        attributes=dict(entity.attributes),
        mentions=entity.extraction_count or None,
        confidence=entity.confidence,
        importance=entity.importance if entity.importance != 0.5 else None,
        first_mentioned_at=local(entity.first_mentioned_at, zone),
        last_mentioned_at=local(entity.last_mentioned_at, zone),
    )


def step_view(step: Step, named: Mapping[int, str]) -> str:
    """The relation in its own direction; `—` where it has none."""
    source, target = (step.here, step.there) if step.forward else (step.there, step.here)
    arrow = ">" if step.directed else "—"
    return f"{named[source]} {arrow} {step.type} {arrow} {named[target]}"


def neighbourhood_view(found: Neighbourhood, zone: ZoneInfo, note: str | None = None) -> dict[str, Any]:
    """The entity and who stands around it; `note` says why nobody does."""
    return {
        "entity": entity_view(found.entity, zone),
        "neighbors": [_neighbour_view(neighbour, found.named) for neighbour in found.neighbours],
        **told(more=found.more or None, namesakes=[entity_view(entity, zone) for entity in found.namesakes], note=note),
    }


def _neighbour_view(neighbour: Neighbour, named: Mapping[int, str]) -> dict[str, Any]:
    return {
        "name": neighbour.entity.name,
        "type": neighbour.entity.type,
        "distance": neighbour.distance,
        "nearness": neighbour.nearness,
        "via": step_view(neighbour.via, named),
        "weight": neighbour.via.weight,
        "confidence": neighbour.via.confidence,
        **told(valid_from=neighbour.via.valid_from, valid_to=neighbour.via.valid_to, more_relations=neighbour.more_relations or None),
    }


def why_nobody(connection: apsw.Connection, types: Sequence[str], name: str, there: Mapping[str, int]) -> str | None:
    """What to say where nothing was found along relations of these `types`, any where none is named: of which types those of the entity of
    that name are, `there`, or what may still come."""
    waiting = unread_note(connection) if not types or "co_occurrence" in types else None
    if waiting or not types:
        return waiting
    asked = f"along relations of the type {' or '.join(types)[:200]} nothing is reached"
    return f"{asked}; those of {name} are of {_counted(there)}" if there else f"{asked}; {name} has no relations yet"


def why_no_way(connection: apsw.Connection, found: Paths, types: Sequence[str], max_depth: int) -> str:
    """What to say where no way of so many hops was found, along relations of these `types`, any where none is named."""
    if found.alone:
        why = f"{' and '.join(found.alone)} {'has' if len(found.alone) == 1 else 'have'} no relations yet"
    else:
        along = f" along relations of the type {' or '.join(types)[:200]}" if types else ""
        why = (
            f"no way of at most {max_depth} hop{'s' if max_depth > 1 else ''} leads from {found.source.name} to {found.target.name}{along}"
        )
        if max_depth < HOPS_LIMIT:
            why += f"; a larger max_depth, up to {HOPS_LIMIT}, may find one"
    if types and found.types_there:
        why += f"; the relations of {found.source.name} are of {_counted(found.types_there)}"
    waiting = unread_note(connection) if not types or "co_occurrence" in types else None
    return f"{why}; {waiting}" if waiting else why


def _counted(types: Mapping[str, int]) -> str:
    return ", ".join(f"{type_} ({many})" for type_, many in types.items())


def unread_note(connection: apsw.Connection) -> str | None:
    """What may still come of memories that were not yet read for whom they name together; None where there are none."""
    waiting = relation_queue.length(connection)
    if not waiting:
        return None
    memories = "1 memory waits" if waiting == 1 else f"{waiting} memories wait"
    return f"{memories} to be read for names that stand together, which is done while nobody calls: more may come of it"


def paths_view(found: Paths, note: str | None = None) -> dict[str, Any]:
    """The ways from one to the other, step by step; `note` says why there is none."""
    return {
        "source": found.source.name,
        "target": found.target.name,
        "paths": [
            {
                "length": len(path.steps),
                "strength": path.strength,
                "entities": [found.source.name, *(found.named[step.there] for step in path.steps)],
                "steps": [f"{step_view(step, found.named)}{validity(step.valid_from, step.valid_to)}" for step in path.steps],
            }
            for path in found.paths
        ],
        **told(namesakes=[{"id": entity.entity_id, "name": entity.name, "type": entity.type} for entity in found.namesakes]),
        **told(note=note if found.complete else "the search ended before it had seen all ways"),
    }


def snapshot_view(found: Snapshot, form: str, zone: ZoneInfo) -> dict[str, Any]:
    """The picture, as `vis` (nodes and edges for vis.js) or `json` (entities and relations with all that is known)."""
    totals = {"entities_in_all": found.entities_in_all, "relations_in_all": found.relations_in_all}
    if form == "json":
        named = {entity.id: entity.name for entity in found.entities}
        return {
            "entities": [entity_view(entity, zone) for entity in found.entities],
            "relations": [relation_view(relation, named) for relation in found.relations],
            **totals,
        }
    ids = {entity.id: entity.entity_id for entity in found.entities}
    return {
        "nodes": [
            {
                "id": entity.entity_id,
                "label": entity.name,
                "group": entity.type,
                "color": found.colors.get(entity.type, DEFAULT_COLOR),
                "value": entity.extraction_count,
            }
            for entity in found.entities
        ],
        "edges": [
            {
                "from": ids[relation.source],
                "to": ids[relation.target],
                "label": relation.type,
                "value": relation.weight,
                **({"arrows": "to"} if relation.directed else {}),
            }
            for relation in found.relations
        ],
        **totals,
    }


def relation_view(relation: Relation, named: Mapping[int, str]) -> dict[str, Any]:
    """A relation with what speaks for it."""
    return told(
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
