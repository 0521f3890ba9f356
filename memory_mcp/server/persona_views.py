"""A persona in figures: what it holds, what that takes, who may call as it, and what older servers left of it."""

from typing import Any

from memory_mcp.server.request_persona import Call
from memory_mcp.server.status import statistics
from memory_mcp.store import erasure, tombstones
from memory_mcp.store.files.access_tokens import read_tokens
from memory_mcp.store.sqlite import bulk_rows
from memory_mcp.store.vectors import index_files
from memory_mcp.upkeep import adopted_originals

_TABLES = {"versions": "memory_versions", "operations": "operations", "vectors": "vectors"}


def figures(call: Call, name: str) -> dict[str, Any]:
    """Everything there is to count of a persona that exists."""
    personas = call.runtime.personas
    with personas.reading(name) as persona:
        counted = statistics(call, persona)
        with persona.database.read() as connection:
            beside = {
                **{named: bulk_rows.row_count(connection, table) for named, table in _TABLES.items()},
                "erased": len(tombstones.read_all(connection)),
                "sweep_due": erasure.sweep_due(connection) is not None,
            }
        index_bytes = index_files.size_bytes(persona.database)
    directory = personas.path_of(name).parent
    return {
        **counted,
        **beside,
        "index_bytes": index_bytes,
        "directory": directory.name,
        "tokens": tokens_of(call, name),
        "kept_copies": adopted_originals.of_persona(directory),
    }


def tokens_of(call: Call, name: str) -> list[str]:
    """The ids of the tokens in force that name this persona; one for all personas names none."""
    found = read_tokens(call.runtime.personas.directory) or {}
    return [token.id for token in found.values() if name in (token.personas or ()) and token.state(call.now) == "in force"]
