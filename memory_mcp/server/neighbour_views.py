"""Who stands around somebody, and how two hang together, as a client sees it: for the tools and the routes alike."""

from collections.abc import Sequence
from typing import Any

import apsw

from memory_mcp.graph.query.neighbors import find_neighbors
from memory_mcp.graph.query.paths import Algorithm, find_path
from memory_mcp.personas.registry import Persona
from memory_mcp.server.entity_views import of_whom
from memory_mcp.server.graph_views import neighbourhood_view, paths_view, why_no_way, why_nobody
from memory_mcp.server.request_persona import Call
from memory_mcp.server.views import heading


def neighbours_answer(
    call: Call, persona: Persona, name: str, depth: int, types: Sequence[str], min_confidence: float, limit: int
) -> dict[str, Any]:
    """The entity of a name, or the one that it means, and who stands around it.

    Raises:
        EntityNotFound: nobody is called so, and nobody is near by meaning.
    """

    def told(connection: apsw.Connection, known: str) -> dict[str, Any]:
        found = find_neighbors(connection, known, depth, types, min_confidence, limit)
        note = None if found.neighbors else why_nobody(connection, types, found.entity.name, found.types_there)
        return neighbourhood_view(found, call.settings.zone, note)

    around, by_meaning = of_whom(call, persona, name, told)
    return {**heading(call, persona), **by_meaning, **around}


def paths_answer(
    call: Call, persona: Persona, ends: tuple[str, str], algorithm: Algorithm, max_depth: int, types: Sequence[str], min_confidence: float
) -> dict[str, Any]:
    """The ways between two.

    Raises:
        EntityNotFound: nobody is called as one of them.
    """
    with persona.database.read() as connection:
        found = find_path(connection, *ends, algorithm, max_depth, types, min_confidence)
        note = None if found.paths else why_no_way(connection, found, types, max_depth)
        return {**heading(call, persona), **paths_view(found, note)}
