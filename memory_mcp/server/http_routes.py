"""The routes beside MCP: is it alive, is it ready, and what operators need (statistics, import, export)."""

import functools
import logging
from typing import Any

from fastmcp import FastMCP
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from memory_mcp import __version__
from memory_mcp.errors import MemoryMCPError
from memory_mcp.server import backup_routes, entity_routes, graph_routes, openapi, organize_routes, persona_routes, upkeep_routes
from memory_mcp.server.api_route import ApiRoute, Handler, check_query
from memory_mcp.server.auth import ADMISSION, Admission
from memory_mcp.server.refusals import http_refusal
from memory_mcp.server.request_persona import Call, call_of
from memory_mcp.server.status import readiness, statistics
from memory_mcp.server.transfers import export_memories, import_memories
from memory_mcp.store import memories

logger = logging.getLogger(__name__)


def register(mcp: FastMCP) -> None:
    """Adds the routes to a server."""
    for route in ROUTES:
        mcp.custom_route(route.path, methods=[route.method])(_refusing(route))


async def health(_request: Request) -> Response:
    """Alive: the process answers. Touches no disk."""
    return JSONResponse({"status": "ok", "version": __version__})


async def ready(request: Request) -> Response:
    """What works now. 200 as soon as memories can be stored and recalled, if only by keyword. Strangers hear that, and no more."""
    admission: Admission = request.scope[ADMISSION]
    if admission.is_stranger:
        return JSONResponse({"ready": True})
    return JSONResponse(await run_in_threadpool(readiness, request.app.state.runtime, admission))


async def openapi_document(_request: Request) -> Response:
    """These routes, in the form that tools read."""
    return JSONResponse(openapi.document())


async def personas(request: Request) -> Response:
    """Every persona that the caller may hear of with its counts; one that can't be opened says why."""
    return JSONResponse({"personas": await run_in_threadpool(_listed, call_of(request))})


async def stats(request: Request) -> Response:
    """The statistics of one persona."""
    call = call_of(request)

    def told() -> dict[str, Any]:
        with call.reading() as persona:
            return statistics(call, persona)

    return JSONResponse(await run_in_threadpool(told))


def _listed(call: Call) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for name in call.visible_personas():
        try:
            with call.runtime.personas.reading(name) as persona, persona.database.read() as connection:
                found.append({"name": name, **memories.counts(connection)})
        except MemoryMCPError as error:
            found.append({"name": name, "error": str(error)})
    return found


ROUTES = (
    ApiRoute("/health", "GET", health),
    ApiRoute("/ready", "GET", ready),
    ApiRoute("/api/openapi.json", "GET", openapi_document),
    ApiRoute("/api/personas", "GET", personas),
    ApiRoute("/api/stats", "GET", stats),
    ApiRoute("/api/organize", "GET", organize_routes.proposals, frozenset({"read"})),
    ApiRoute("/api/organize", "POST", organize_routes.tidy, frozenset({"read", "write", "delete"})),
    ApiRoute("/api/import", "POST", import_memories, frozenset({"write"})),
    ApiRoute("/api/export", "GET", export_memories, frozenset({"export"})),
    ApiRoute("/api/backups", "GET", backup_routes.listed, frozenset({"admin"})),
    ApiRoute("/api/backups", "POST", backup_routes.make, frozenset({"admin"})),
    *graph_routes.ROUTES,
    *upkeep_routes.ROUTES,
    *persona_routes.ROUTES,
    *entity_routes.ROUTES,
)


# Whoever looks whether the server is alive may add what he likes.
_PROBES = ("/health", "/ready")


def _refusing(route: ApiRoute) -> Handler:
    known = openapi.queried(route.method, route.path)

    @functools.wraps(route.handler)
    async def answer(request: Request) -> Response:
        admission: Admission = request.scope[ADMISSION]
        try:
            if not route.needs <= admission.scopes:
                await run_in_threadpool(admission.require, route.needs, route.name)  # it writes to a log
            if route.path not in _PROBES:
                check_query(request, known)
            return await route.handler(request)
        except MemoryMCPError as error:
            return http_refusal(error, rules=request.app.state.runtime.config.current().privacy)
        except ClientDisconnect:
            logger.info("%s: the client hung up before it had sent everything", request.url.path)
            return Response(status_code=400)  # nobody reads it

    return answer
