"""What could be tidied, merging and undoing, as a client sees them: for the tool `organize` and the routes of the same name."""

from collections.abc import Sequence
from typing import Any

import apsw

from memory_mcp.domain import Memory
from memory_mcp.errors import InvalidInput
from memory_mcp.personas.registry import Persona
from memory_mcp.remember.merge import MERGE, UNDO, Merged, merge, undo
from memory_mcp.server.request_persona import Call
from memory_mcp.server.views import heading, local, outcome_view, told
from memory_mcp.store import memories, memory_merges
from memory_mcp.store.graph import consistency, memory_links
from memory_mcp.store.timestamps import from_text
from memory_mcp.text.budget import preview
from memory_mcp.text.labels import label
from memory_mcp.upkeep.memory_proposals import proposals

SHOWN, SHOWN_LIMIT = 10, 50
KEYS_LIMIT = 100


def organized(call: Call, into: str, keys: Sequence[str], operation_id: str, reason: str, shown: int | None) -> dict[str, Any]:
    """Merges where `keys` are given, undoes where an `operation_id` is, and lists what could be tidied where neither is.

    Raises:
        InvalidInput, MemoryNotFound: it can't be done; nothing was changed.
    """
    asked = [name for name, given in (("merge", keys), ("undo", operation_id.strip())) if given]
    if len(asked) > 1:
        raise InvalidInput("merge and undo were both given", "one call does one of them", "Send two calls")
    if into.strip() and not keys:
        raise InvalidInput("into was given without merge", "", "Name in merge what is to be merged into it")
    if not asked:
        return listing(call, shown)
    with call.changing() as persona:
        done = _merged(call, persona, keys, into.strip(), reason) if keys else undo(persona, operation_id.strip(), now=call.now)
        return {
            **heading(call, persona),
            **told(operation_id=done.operation_id, undoes=operation_id.strip()),
            "outcomes": [outcome_view(outcome) for outcome in done.outcomes],
        }


def listing(call: Call, shown: int | None) -> dict[str, Any]:
    """What could be tidied. Changes nothing."""
    limit = SHOWN if shown is None else shown
    if not 1 <= limit <= SHOWN_LIMIT:
        raise InvalidInput(f"top_k is {limit}", f"it runs from 1 to {SHOWN_LIMIT}", "Leave it out for the default")
    with call.reading() as persona:
        found = proposals(persona, call.settings, call.now, limit)
        with persona.database.read() as connection:
            recent = memory_merges.latest(connection, MERGE, UNDO, limit)
            graph, graph_counts = _of_graph(connection, call, limit)
        return {
            **heading(call, persona),
            "compared": found.compared,
            "of": found.of,
            "meaning": found.meaning,
            "duplicates": [
                {
                    "into": brief(group.kept, call),
                    "merge": [{**brief(alike.memory, call), "similarity": alike.similarity, "why": alike.why} for alike in group.similar],
                }
                for group in found.groups
            ],
            "low_value": [{**brief(memory, call), "why": why} for memory, why in found.low_value],
            "faded": [{**brief(memory, call), "retention": left} for memory, left in found.faded],
            "counts": {"duplicates": found.groups_count, "low_value": found.low_value_count, "faded": found.faded_count, **graph_counts},
            **graph,
            "merges": [
                {"operation_id": operation_id, "into": row.key, "merge": list(row.metadata.get("of", [])), "at": _at(row.timestamp, call)}
                for operation_id, row in recent
            ],
        }


def _of_graph(connection: apsw.Connection, call: Call, limit: int) -> tuple[dict[str, Any], dict[str, int]]:
    """What might be wrong with the graph, and how much of each kind there is."""
    pairs, contradictions = memory_links.contradictions(connection, limit)
    found = memories.by_ids(connection, {memory for pair in pairs for memory in pair})
    opposed, opposed_count = consistency.opposed(connection, limit)
    unsure, unsure_count = consistency.unsure(connection, limit)
    orphans, orphans_count = consistency.orphans(connection, limit)
    shown = {
        "contradictions": [[brief(found[memory], call) for memory in pair] for pair in pairs],
        "opposed_relations": [[" > ".join(one) for one in pair] for pair in opposed],
        "unsure_relations": [{"relation": " > ".join(relation), "confidence": confidence} for relation, confidence in unsure],
        "orphans": orphans,
    }
    counts = dict(zip(shown, (contradictions, opposed_count, unsure_count, orphans_count), strict=True))
    return shown, counts


def _merged(call: Call, persona: Persona, keys: Sequence[str], into: str, reason: str) -> Merged:
    if len(keys) > KEYS_LIMIT:
        raise InvalidInput(f"merge has {len(keys)} entries", f"{KEYS_LIMIT} are the limit", "Send fewer")
    if not into:
        raise InvalidInput("into is missing", "one of them has to stay", "Name its key with into")
    return merge(persona, [key.strip() for key in keys], into, reason=label(reason, "reason"), now=call.now, privacy=call.settings.privacy)


def brief(memory: Memory, call: Call) -> dict[str, Any]:
    """A memory in a list: what tells it from others."""
    zone = call.settings.zone
    return told(
        key=memory.key,
        content=preview(memory.content),
        source=memory.source,
        session_id=memory.session_id,
        happened=local(memory.event_time, zone),
        tags=list(memory.tags),
        importance=memory.importance,
    )


def _at(timestamp: str, call: Call) -> str | None:
    return local(from_text(timestamp), call.settings.zone)
