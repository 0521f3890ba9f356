"""The HTTP routes made from the operations, and those of the server itself: health, readiness, its OpenAPI document."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from difflib import get_close_matches

from fastmcp import FastMCP
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from memory_mcp import __version__
from memory_mcp.errors import MemoryMCPError
from memory_mcp.server import metrics
from memory_mcp.server.actions import (
    browse,
    configuration,
    context,
    imports,
    memories,
    organize,
    personas,
    private_data,
    records,
    tokens,
    transfer,
    upkeep,
)
from memory_mcp.server.arguments import Arguments, NoArguments
from memory_mcp.server.auth import ADMISSION, Admission
from memory_mcp.server.call import call_of
from memory_mcp.server.errors import http_refusal
from memory_mcp.server.feature import features
from memory_mcp.server.http import openapi
from memory_mcp.server.http.requests import arguments_of
from memory_mcp.server.operation import Operation, Route, operation, operations_of
from memory_mcp.server.rewording import REWORDED
from memory_mcp.server.sentences import Answer
from memory_mcp.server.status import Health, Readiness, readiness
from memory_mcp.server.views import omit_empty

# How alike a name that was called and one that there is are, as difflib counts.
NEAR = 0.75

logger = logging.getLogger(__name__)


@operation(route=Route("GET", "/health", of_persona=False, is_probe=True), answer=Health)
async def health(request: Request, _arguments: NoArguments) -> Response:
    """Say that the process is alive. Touches no disk."""
    return JSONResponse({"status": "ok", "version": __version__, **omit_empty(instance=request.app.state.runtime.instance)})


@operation(route=Route("GET", "/ready", of_persona=False, is_probe=True), answer=Readiness)
async def ready(request: Request, _arguments: NoArguments) -> Response:
    """Say what works now. A caller without a token learns only that the server is ready.

    The status is 200 as soon as memories can be stored and recalled, if only by keyword.
    """
    admission: Admission = request.scope[ADMISSION]
    if admission.is_stranger:
        return JSONResponse({"ready": True})
    return JSONResponse(await run_in_threadpool(readiness, request.app.state.runtime, admission))


@operation(
    needs=["admin"],
    route=Route("GET", "/metrics", of_persona=False, is_probe=True, content={metrics.CONTENT_TYPE: {"schema": {"type": "string"}}}),
)
async def read_metrics(request: Request, _arguments: NoArguments) -> Response:
    """Return what Prometheus reads: how long calls take and how they end, what waits, what fails. Names no persona."""
    return await run_in_threadpool(metrics.answer, request)


@operation(route=Route("GET", "/api/openapi.json", of_persona=False), answer=openapi.OpenAPI)
async def openapi_document(_request: Request, _arguments: NoArguments) -> Response:
    """Return this document."""
    return JSONResponse(openapi.document(OPERATIONS))


# Every operation that has a route, in the order of the OpenAPI document.
OPERATIONS = (
    health,
    ready,
    read_metrics,
    openapi_document,
    *(
        action
        for action in operations_of(
            *(browse, personas, transfer, imports, memories, context, organize, upkeep, tokens, configuration, records, private_data),
        )
        if action.route is not None
    ),
    *(action for feature in features() for action in feature.operations if action.route is not None),
)


def register(mcp: FastMCP) -> None:
    """Add the routes to a server."""
    for action in OPERATIONS:
        if action.route is not None:
            mcp.custom_route(action.route.path, methods=[action.route.method])(_handler(action, action.route))


async def nowhere(request: Request) -> Response:
    """Say where what was called is: at this address by another method, or by the name of a tool or a route at another address."""
    path = request.scope["path"]
    routes = [(action, action.route) for action in OPERATIONS if action.route]
    if taken := [route.method for _, route in routes if route.path == path]:
        return _refused(405, f"Here it takes {' and '.join(taken)}.", {"Allow": ", ".join(taken)})
    names = {route.path.rsplit("/", 1)[-1]: route.name for _, route in routes}
    names |= {action.tool.name: route.name for action, route in routes if action.tool}
    near = get_close_matches(path.rsplit("/", 1)[-1], names, n=1, cutoff=NEAR)
    return _refused(404, f"{f'Perhaps you mean {names[near[0]]}. ' if near else ''}All routes: GET /api/openapi.json.")


def _refused(status: int, hint: str, headers: Mapping[str, str] | None = None) -> Response:
    return JSONResponse({"error": f"{REWORDED[status]} {hint}"}, status, headers)


def _handler(action: Operation, route: Route) -> Callable[[Request], Awaitable[Response]]:
    async def handle(request: Request) -> Response:
        admission: Admission = request.scope[ADMISSION]
        try:
            if not action.needs <= admission.scopes:
                await run_in_threadpool(admission.require, action.needs, route.name)  # it writes to a log
            arguments = await arguments_of(request, route, action.arguments)
            return await _answer(action, request, arguments)
        except MemoryMCPError as error:
            return http_refusal(error, rules=request.app.state.runtime.config.current().privacy)
        except ClientDisconnect:
            logger.info("%s: the client hung up before it had sent everything", request.url.path)
            return Response(status_code=400)  # it is not read

    handle.__name__ = action.function.__name__
    return handle


async def _answer(action: Operation, request: Request, arguments: Arguments) -> Response:
    if action.is_asynchronous:
        response: Response = await action.function(request, arguments)
        return response
    call = call_of(request)
    return await run_in_threadpool(lambda: Answer(action(call, arguments)))
