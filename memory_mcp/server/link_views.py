"""Memory to memory as a client sees it: which memories one is linked to, and how."""

from collections.abc import Mapping, Sequence
from typing import Any

from memory_mcp.domain import Memory
from memory_mcp.errors import MemoryNotFound
from memory_mcp.server.graph_arguments import types as known_types
from memory_mcp.server.organize_views import brief
from memory_mcp.server.request_persona import Call
from memory_mcp.server.views import heading, told
from memory_mcp.store import memories
from memory_mcp.store.graph import memory_links, relation_queue
from memory_mcp.store.graph.memory_links import Link

LINKS_LIMIT, LINKS_SHOWN = 100, 20


def links_view(call: Call, key: str, types: Sequence[str], limit: int) -> dict[str, Any]:
    """The links of a memory, the strongest first.

    Raises:
        MemoryNotFound: there is no such memory, or it is in the trash.
        InvalidInput: no link can be of one of these types.
    """
    with call.reading() as persona, persona.database.read() as connection:
        memory = memories.by_keys(connection, [key]).get(key)
        if memory is None or memory.deleted_at:
            raise MemoryNotFound(f"no memory has the key {key}", "it is in the trash" if memory else "", "Take the key from a recall")
        wanted = known_types(types, memory_links.types(connection)) if types else []
        found, total = memory_links.of_memory(connection, memory.id, wanted, limit)
        others = memories.by_ids(connection, {end for link in found for end in (link.source, link.target)} - {memory.id})
        waiting = "the memory waits to be linked, which is done while nobody calls" if relation_queue.holds(connection, memory.id) else None
        return {
            **heading(call, persona),
            "key": key,
            "links": [_link(link, memory.id, others, call) for link in found],
            "in_all": total,
            **told(note=waiting),
        }


def _link(link: Link, here: int, others: Mapping[int, Memory], call: Call) -> dict[str, Any]:
    leads = link.source == here
    other = others[link.target if leads else link.source]
    return {
        "type": link.type,
        **told(direction=("to" if leads else "from") if link.type in memory_links.DIRECTED else None),
        "memory": {**brief(other, call), **told(superseded_by=other.superseded_by)},
        "weight": link.weight,
        "confidence": link.confidence,
        "method": link.method,
    }
