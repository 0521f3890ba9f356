"""How the graph looks to a client: names instead of numbers, relations as `A > works_on > B`."""

from collections.abc import Mapping, Sequence
from typing import Any
from zoneinfo import ZoneInfo

import apsw

from memory_mcp.server.views import local, omit_empty
from memory_mcp.store.graph import relation_queue
from memory_mcp.store.graph.entities.entity_merges import Merge
from memory_mcp.store.graph.entities.records import Entity
from memory_mcp.store.graph.neighbors import Step
from memory_mcp.wording import sentence

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


def counted(types: Mapping[str, int]) -> str:
    """Return types of relations with their numbers, as text."""
    return ", ".join(f"{type_} ({many})" for type_, many in types.items())


def unread_note(connection: apsw.Connection, types: Sequence[str]) -> str | None:
    """Say how many memories wait to be read for entities that occur together; None if none waits, or relations of other `types` are asked for."""
    waiting = relation_queue.length(connection) if not types or "co_occurrence" in types else 0
    if not waiting:
        return None
    waits = sentence("{} memory waits" if waiting == 1 else "{} memories wait", waiting)
    return sentence("{} to be read for names that occur together, which is done while nobody calls: more may come of it", waits)


def merge_view(merge: Merge, zone: ZoneInfo) -> dict[str, Any]:
    """Return a merge of two entities, with when it was undone."""
    return {
        "merge": merge.number,
        "entity": merge.merged_name,
        "into": merge.kept_name,
        **omit_empty(reason=merge.reason, merged_at=local(merge.merged_at, zone), undone_at=local(merge.undone_at, zone)),
    }
