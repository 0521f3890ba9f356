"""The routes for the graph's entities, their types, and who is one under many names. The work is done on worker threads."""

import re
from collections.abc import Callable
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from memory_mcp.domain import TokenScope
from memory_mcp.errors import InvalidInput
from memory_mcp.graph.update import entity_edits
from memory_mcp.server import entity_views
from memory_mcp.server.api_route import ApiRoute, object_of, whole_number
from memory_mcp.server.entity_views import ENTITIES_LIMIT, ENTITIES_SHOWN, changed_view
from memory_mcp.server.graph_arguments import name as name_of
from memory_mcp.server.graph_arguments import within
from memory_mcp.server.request_persona import call_of
from memory_mcp.server.views import heading
from memory_mcp.store.graph.entities.editing import EntityChange

KINDS = ("entity", "relation")
OFFSET_LIMIT = 1_000_000
# What may be said of an entity.
_FIELDS: dict[str, type] = {
    **dict.fromkeys(("name", "type", "subtype", "description"), str),
    "aliases": list,
    "importance": float,
    "attributes": dict,
}
_COLOR = re.compile("#[0-9a-fA-F]{6}")


async def listed(request: Request) -> Response:
    """Entities by a part of their names, by type, page by page."""
    call, asked = call_of(request), request.query_params
    limit = within(_number(request, "limit"), "limit", 1, ENTITIES_LIMIT, ENTITIES_SHOWN)
    offset = within(_number(request, "offset"), "offset", 0, OFFSET_LIMIT, 0)
    return await _answered(lambda: entity_views.entities_view(call, asked.get("query", ""), asked.get("type", ""), limit, offset))


async def create(request: Request) -> Response:
    """Makes an entity that no memory needs to name."""
    asked = await object_of(request, **_FIELDS)
    call, wanted = call_of(request), _wanted(asked)

    def told() -> dict[str, Any]:
        with call.reading() as persona:  # what is refused must not make a persona exist
            head = heading(call, persona)
            entity_edits.check_new(persona, wanted, privacy=call.settings.privacy)
        with call.writing() as persona:
            made = entity_edits.create(persona, wanted, now=call.now, privacy=call.settings.privacy)
            return changed_view(call, persona, made, head, renamed=True)

    return await _answered(told)


async def one(request: Request) -> Response:
    """One entity, by its name or id."""
    call, name = call_of(request), _named(request.query_params.get("entity", ""), "entity")
    return await _answered(lambda: entity_views.one_view(call, name))


async def change(request: Request) -> Response:
    """Changes an entity."""
    asked = await object_of(request, entity=str, **_FIELDS)
    call, name, wanted = call_of(request), _named(asked.get("entity", ""), "entity"), _wanted(asked)

    def told() -> dict[str, Any]:
        with call.changing() as persona:
            changed = entity_edits.change(persona, name, wanted, now=call.now, privacy=call.settings.privacy)
            renamed = bool(wanted.name or wanted.type or wanted.aliases is not None)
            return changed_view(call, persona, changed, heading(call, persona), renamed=renamed)

    return await _answered(told)


async def delete(request: Request) -> Response:
    """Takes an entity away."""
    call, name = call_of(request), _named(request.query_params.get("entity", ""), "entity")

    def told() -> dict[str, Any]:
        with call.changing() as persona:
            gone = entity_edits.delete(persona, name, now=call.now)
            return {**heading(call, persona), "deleted": gone.name}

    return await _answered(told)


async def types(request: Request) -> Response:
    """The types of entities and relations."""
    call = call_of(request)
    return await _answered(lambda: entity_views.types_view(call))


async def create_type(request: Request) -> Response:
    """Adds a type."""
    asked = await object_of(request, kind=str, name=str, display_name=str, description=str, color=str, directed=bool)
    call, kind, name = call_of(request), _kind(asked.get("kind", "")), _named(asked.get("name", ""), "name")
    color = asked.get("color")
    if color and not _COLOR.fullmatch(color):
        raise InvalidInput(f"color is {color[:80]!r}", "it is # and six hexadecimal digits", "Send one such as #e4572e, or none")

    wanted = entity_edits.NewType(
        kind, name, asked.get("display_name"), asked.get("description"), color or None, asked.get("directed", True)
    )
    entity_edits.checked_type(wanted, call.settings.privacy)  # what is refused must not make a persona exist

    def told() -> dict[str, Any]:
        with call.writing() as persona:
            entity_edits.create_type(persona, wanted, now=call.now, privacy=call.settings.privacy)
        return entity_views.types_view(call)

    return await _answered(told)


async def delete_type(request: Request) -> Response:
    """Takes a type away that nothing uses."""
    call, kind = call_of(request), _kind(request.query_params.get("kind", ""))
    name = _named(request.query_params.get("name", ""), "name")

    def told() -> dict[str, Any]:
        with call.changing() as persona:
            entity_edits.delete_type(persona, kind, name, now=call.now)
        return entity_views.types_view(call)

    return await _answered(told)


async def merges(request: Request) -> Response:
    """Who may be one under two names, and the merges so far."""
    call, limit = call_of(request), _number(request, "limit")
    return await _answered(lambda: entity_views.listing(call, limit))


async def merge(request: Request) -> Response:
    """Merges two, undoes a merge, or says that two are not the same."""
    asked = await object_of(request, entity=str, into=str, undo=int, distinct=bool, reason=str)
    call, undo, distinct = call_of(request), asked.get("undo"), asked.get("distinct", False)
    entity, into = asked.get("entity", ""), asked.get("into", "")
    if undo is None and not (entity.strip() or into.strip()):
        raise InvalidInput(
            "nothing to do", "neither entity and into nor undo was given", 'Send {"entity": "…", "into": "…"} or {"undo": 1}'
        )
    return await _answered(lambda: entity_views.merged(call, entity, into, undo, distinct, asked.get("reason", ""), None))


async def _answered(told: Callable[[], dict[str, Any]]) -> Response:
    return JSONResponse(await run_in_threadpool(told))


def _wanted(asked: dict[str, Any]) -> EntityChange:
    return EntityChange(
        name=asked.get("name"),
        type=asked.get("type"),
        description=asked.get("description"),
        aliases=entity_views.names(asked.get("aliases")),
        importance=asked.get("importance"),
        subtype=asked.get("subtype"),
        attributes=asked.get("attributes"),
    )


def _number(request: Request, name: str) -> int | None:
    return whole_number(request, name, "it is a whole number, none below 0")


def _named(name: str, field: str) -> str:
    if not name.strip():
        raise InvalidInput(f"{field} is missing", "", "Send one; GET lists those that there are")
    return name_of(name, field)


def _kind(kind: str) -> str:
    if kind not in KINDS:
        raise InvalidInput(f"kind is {kind[:80]!r}", f"it is {' or '.join(KINDS)}", "Say of what the type is")
    return kind


_READ: frozenset[TokenScope] = frozenset({"read"})
_WRITE: frozenset[TokenScope] = frozenset({"read", "write"})
_DELETE: frozenset[TokenScope] = frozenset({"read", "write", "delete"})

ROUTES = (
    ApiRoute("/api/graph/entities", "GET", listed, _READ),
    ApiRoute("/api/graph/entities", "POST", create, _WRITE),
    ApiRoute("/api/graph/entity", "GET", one, _READ),
    ApiRoute("/api/graph/entity", "PATCH", change, _WRITE),
    ApiRoute("/api/graph/entity", "DELETE", delete, _DELETE),
    ApiRoute("/api/graph/types", "GET", types, _READ),
    ApiRoute("/api/graph/types", "POST", create_type, _WRITE),
    ApiRoute("/api/graph/types", "DELETE", delete_type, _DELETE),
    ApiRoute("/api/graph/merges", "GET", merges, _READ),
    ApiRoute("/api/graph/merges", "POST", merge, _WRITE),
)
