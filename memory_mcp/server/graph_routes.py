"""The routes of the graph: what its tools tell, analyses of the whole, and the whole as a file. All work is done on worker threads."""

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from memory_mcp.errors import InvalidInput
from memory_mcp.graph.query.snapshot import snapshot
from memory_mcp.personas.registry import Persona
from memory_mcp.server import graph_analytics_views as analytics_views
from memory_mcp.server import graph_arguments as arguments
from memory_mcp.server.api_route import ApiRoute, whole_number
from memory_mcp.server.graph_views import snapshot_view
from memory_mcp.server.link_views import LINKS_LIMIT, LINKS_SHOWN, links_view
from memory_mcp.server.neighbour_views import neighbours_answer, paths_answer
from memory_mcp.server.request_persona import Call, call_of
from memory_mcp.server.views import heading
from memory_mcp.store.graph.entities import records
from memory_mcp.text.labels import label
from memory_mcp.transfer.graph_export import graphml, node_link

ANALYTICS_LIMIT, COMMUNITIES_LIMIT, MEMBERS_LIMIT, GROWTH_LIMIT = 100, 50, 50, 1_000
EXPORTS = {"graphml": ("application/graphml+xml", graphml), "json": ("application/json", node_link)}


async def graph_statistics(request: Request) -> Response:
    """The graph in figures."""
    lightest = arguments.share(_number(request, "min_weight"), "min_weight")
    return await _told(request, lambda call, persona: analytics_views.statistics_view(call, persona, lightest))


async def graph_analytics(request: Request) -> Response:
    """Who counts most."""
    measure, lightest = arguments.measure(_text(request, "measure")), arguments.share(_number(request, "min_weight"), "min_weight")
    limit = _whole(request, "limit", ANALYTICS_LIMIT, 20)
    return await _told(request, lambda call, persona: analytics_views.analytics_view(call, persona, measure, limit, lightest))


async def graph_communities(request: Request) -> Response:
    """Who belongs together."""
    lightest = arguments.share(_number(request, "min_weight"), "min_weight")
    limit, members = _whole(request, "limit", COMMUNITIES_LIMIT, 20), _whole(request, "members", MEMBERS_LIMIT, 10)
    return await _told(request, lambda call, persona: analytics_views.communities_view(call, persona, limit, members, lightest))


async def graph_growth(request: Request) -> Response:
    """How the graph grew."""
    interval, limit = arguments.interval(_text(request, "interval")), _whole(request, "limit", GROWTH_LIMIT, 24)
    return await _told(request, lambda call, persona: analytics_views.growth_view(call, persona, interval, limit))


async def graph_picture(request: Request) -> Response:
    """The entities that count most and what relates them, to be drawn."""
    form, types = arguments.form(_text(request, "format")), request.query_params.getlist("types")
    limit = _whole(request, "limit", arguments.SNAPSHOT_LIMIT, 50)

    def told(call: Call, persona: Persona) -> dict[str, Any]:
        with persona.database.read() as connection:
            shown = arguments.types(types, records.entity_types(connection))
            return {**heading(call, persona), **snapshot_view(snapshot(connection, limit, shown), form, call.settings.zone)}

    return await _told(request, told)


async def graph_neighbours(request: Request) -> Response:
    """Whom an entity is related to."""
    name, types = arguments.name(_text(request, "entity"), "entity"), request.query_params.getlist("relation_types")
    depth, limit = _whole(request, "depth", arguments.DEPTH_LIMIT, 1), _whole(request, "limit", arguments.NEIGHBOURS_LIMIT, 20)
    least = arguments.share(_number(request, "min_confidence"))

    return await _told(request, lambda call, persona: neighbours_answer(call, persona, name, depth, types, least, limit))


async def graph_paths(request: Request) -> Response:
    """How two entities hang together."""
    ends = arguments.name(_text(request, "source"), "source"), arguments.name(_text(request, "target"), "target")
    algorithm, depth = arguments.algorithm(_text(request, "algorithm")), _whole(request, "max_depth", arguments.PATH_LIMIT, 4)
    types, least = request.query_params.getlist("relation_types"), arguments.share(_number(request, "min_confidence"))

    return await _told(request, lambda call, persona: paths_answer(call, persona, ends, algorithm, depth, types, least))


async def memory_links(request: Request) -> Response:
    """To which memories one is linked, and how."""
    call, key, types = call_of(request), label(_text(request, "key"), "key"), request.query_params.getlist("types")
    if key is None:
        raise InvalidInput("key is missing", "", "Take one from a recall")
    limit = _whole(request, "limit", LINKS_LIMIT, LINKS_SHOWN)
    return JSONResponse(await run_in_threadpool(links_view, call, key, types, limit))


async def export_graph(request: Request) -> Response:
    """The whole graph as a file, while it is read."""
    call, form = call_of(request), _text(request, "format") or "graphml"
    if form not in EXPORTS:
        raise InvalidInput(f"format is {form[:80]!r}", f"it is one of {', '.join(EXPORTS)}", "Leave it out for graphml")
    wanted = _text(request, "include_secret").casefold() or "false"
    if wanted not in ("true", "false"):
        raise InvalidInput(f"include_secret is {wanted[:80]!r}", "it is true or false", "Leave it out for false")
    media_type, written = EXPORTS[form]

    def blocks() -> Iterator[bytes]:
        with call.reading() as persona:
            for block in written(persona, include_secret=wanted == "true"):
                yield block.encode()

    leaving = blocks()
    # A persona that can't be read is refused while there is a status to say so.
    first = await run_in_threadpool(next, leaving, b"")
    headers = {"Content-Disposition": f'attachment; filename="graph.{form}"'}
    return StreamingResponse(itertools.chain([first], leaving), media_type=media_type, headers=headers)


async def _told(request: Request, view: Callable[[Call, Persona], dict[str, Any]]) -> Response:
    call = call_of(request)

    def answer() -> Response:
        with call.reading() as persona:
            return JSONResponse(view(call, persona))

    return await run_in_threadpool(answer)


def _text(request: Request, name: str) -> str:
    return request.query_params.get(name, "")


def _whole(request: Request, name: str, most: int, default: int) -> int:
    asked = whole_number(request, name, f"it is a whole number from 1 to {most}", f"Leave it out for {default}")
    return arguments.within(asked, name, 1, most, default)


def _number(request: Request, name: str) -> float | None:
    value = _text(request, name)
    try:
        number = float(value) if value else None
    except ValueError:
        number = math.nan
    if number is not None and not math.isfinite(number):
        raise InvalidInput(f"{name} is {value[:80]!r}", "it is a number from 0 to 1", "Leave it out for 0")
    return number


_READ = frozenset[Any]({"read"})

ROUTES = (
    ApiRoute("/api/graph/statistics", "GET", graph_statistics, _READ),
    ApiRoute("/api/graph/analytics", "GET", graph_analytics, _READ),
    ApiRoute("/api/graph/communities", "GET", graph_communities, _READ),
    ApiRoute("/api/graph/growth", "GET", graph_growth, _READ),
    ApiRoute("/api/graph/snapshot", "GET", graph_picture, _READ),
    ApiRoute("/api/graph/neighbors", "GET", graph_neighbours, _READ),
    ApiRoute("/api/graph/paths", "GET", graph_paths, _READ),
    ApiRoute("/api/graph/memory-links", "GET", memory_links, _READ),
    ApiRoute("/api/graph/export", "GET", export_graph, frozenset({"export"})),
)
