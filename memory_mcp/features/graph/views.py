"""How the graph looks to a client: names instead of numbers, relations as `A > works_on > B`, snapshots as vis.js reads them."""

import math
from collections.abc import Mapping, Sequence
from typing import Any
from zoneinfo import ZoneInfo

import apsw

from memory_mcp.features.graph.query.layout import Places
from memory_mcp.features.graph.query.paths import Paths
from memory_mcp.features.graph.query.snapshot import Snapshot
from memory_mcp.server.views import local, omit_empty
from memory_mcp.store.graph import neighbors, relation_queue
from memory_mcp.store.graph.entities.entity_merges import Merge
from memory_mcp.store.graph.entities.records import Entity
from memory_mcp.store.graph.neighbors import HOPS_LIMIT, Step
from memory_mcp.store.graph.overview import Relation
from memory_mcp.store.graph.relations import validity
from memory_mcp.wording import clauses, sentence

DEFAULT_COLOR = "#adb5bd"
MERGES_LIMIT = 100


def entity_view(entity: Entity, zone: ZoneInfo) -> dict[str, Any]:
    """Return an entity with what is known of it."""
    return omit_empty(
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
    """Return the relation in its own direction, with `—` if it has none."""
    source, target = (step.here, step.there) if step.forward else (step.there, step.here)
    arrow = ">" if step.directed else "—"
    return f"{named[source]} {arrow} {step.type} {arrow} {named[target]}"


def why_no_neighbors(connection: apsw.Connection, types: Sequence[str], entity: Entity) -> str | None:
    """Say why an entity has no neighbors along relations of these `types`, of any type if none is named: which types its relations have,
    or what background work may still add."""
    waiting = unread_note(connection) if not types or "co_occurrence" in types else None
    if waiting or not types:
        return waiting
    asked = sentence("along relations of the type {} nothing is reached", " or ".join(types)[:200])
    there = neighbors.types_at(connection, entity.id)
    rest = sentence("those of {} are of {}", entity.name, _counted(there)) if there else sentence("{} has no relations yet", entity.name)
    return clauses([asked, rest])


def why_no_path(connection: apsw.Connection, paths: Paths, types: Sequence[str], max_depth: int) -> str:
    """Say why there is no path of so many hops along relations of these `types`, of any type if none is named."""
    there, from_target = (neighbors.types_at(connection, entity.id) for entity in (paths.source, paths.target))
    if alone := [entity.name for entity, known in ((paths.source, there), (paths.target, from_target)) if not known]:
        why = [sentence("{} has no relations yet" if len(alone) == 1 else "{} and {} have no relations yet", *alone)]
    else:
        along = sentence(" along relations of the type {}", " or ".join(types)[:200]) if types else ""
        none = "no path of at most {} hops leads from {} to {}{}" if max_depth > 1 else "no path of at most {} hop leads from {} to {}{}"
        why = [sentence(none, max_depth, paths.source.name, paths.target.name, along)]
        if max_depth < HOPS_LIMIT:
            why.append(sentence("a larger max_depth, up to {}, may find one", HOPS_LIMIT))
    if types and there:
        why.append(sentence("the relations of {} are of {}", paths.source.name, _counted(there)))
    waiting = unread_note(connection) if not types or "co_occurrence" in types else None
    return clauses([*why, *([waiting] if waiting else [])])


def _counted(types: Mapping[str, int]) -> str:
    return ", ".join(f"{type_} ({many})" for type_, many in types.items())


def unread_note(connection: apsw.Connection) -> str | None:
    """Say how many memories wait to be read for entities that occur together; None if none waits."""
    waiting = relation_queue.length(connection)
    if not waiting:
        return None
    waits = sentence("{} memory waits" if waiting == 1 else "{} memories wait", waiting)
    return sentence("{} to be read for names that occur together, which is done while nobody calls: more may come of it", waits)


def paths_view(paths: Paths, note: str | None = None) -> dict[str, Any]:
    """Return the paths between two entities, step by step; `note` gives the reason where there is none."""
    return {
        "source": paths.source.name,
        "target": paths.target.name,
        "paths": [
            {
                "length": len(path),
                "strength": round(math.prod(step.weight for step in path), 4),
                "entities": [paths.source.name, *(paths.named[step.there] for step in path)],
                "steps": [f"{step_view(step, paths.named)}{validity(step.valid_from, step.valid_to)}" for step in path],
            }
            for path in paths.paths
        ],
        **omit_empty(namesakes=[{"id": entity.entity_id, "name": entity.name, "type": entity.type} for entity in paths.namesakes]),
        **omit_empty(note=note if paths.complete else "the search ended before it had seen all paths"),
    }


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


def merge_view(merge: Merge, zone: ZoneInfo) -> dict[str, Any]:
    """Return a merge of two entities, with when it was undone."""
    return {
        "merge": merge.number,
        "entity": merge.merged_name,
        "into": merge.kept_name,
        **omit_empty(reason=merge.reason, merged_at=local(merge.merged_at, zone), undone_at=local(merge.undone_at, zone)),
    }
