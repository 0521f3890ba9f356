"""The MCP server and the ASGI application around it."""

import gc
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any

import anyio
import fastmcp
from fastmcp import FastMCP
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from memory_mcp import __version__
from memory_mcp.config.settings import Settings
from memory_mcp.extras import is_installed
from memory_mcp.personas.server_lock import YIELD_PATH
from memory_mcp.server.auth import Authenticator
from memory_mcp.server.bounds import Bounds
from memory_mcp.server.concurrency import WORKER_THREADS, ConcurrencyLimiter
from memory_mcp.server.edge import Edge, part_of
from memory_mcp.server.feature import features, pools
from memory_mcp.server.http import routes
from memory_mcp.server.mcp import apps, instructions, resources
from memory_mcp.server.mcp.access import Needs, ScopeCheck
from memory_mcp.server.mcp.tool_calls import PlainCalls, ToolCalls
from memory_mcp.server.mcp.tools import TOOLSETS, apps_of, operations_of, tools_of
from memory_mcp.server.metrics import Metrics
from memory_mcp.server.oauth import endpoints as oauth
from memory_mcp.server.runtime import Runtime

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


def mcp_server(settings: Settings, on_started: Callable[[], None] | None = None) -> FastMCP:
    """Build the server with the tools, resources, prompts and routes that these settings ask for; to answer it needs a `Runtime`.

    `on_started` is called when it is ready for calls.
    """

    @asynccontextmanager
    async def lifespan(_mcp: FastMCP) -> AsyncIterator[dict[str, Any]]:
        quicken_calls()
        anyio.to_thread.current_default_thread_limiter().total_tokens = WORKER_THREADS
        if on_started:
            on_started()
        yield {}

    fastmcp.settings.telemetry_mode = "off"
    mcp = FastMCP(name="memory", version=__version__, instructions=instructions.INSTRUCTIONS, lifespan=lifespan, mask_error_details=True)
    for tool in tools_of(settings.toolsets, with_pools=bool(pools(settings))):
        mcp.add_tool(tool)
    mcp.add_middleware(ScopeCheck(scope_needs(settings.toolsets)))
    resources.register(mcp)
    apps.register(mcp, apps_of(settings.toolsets))
    instructions.register(mcp)
    routes.register(mcp)
    return mcp


def http_application(mcp: FastMCP, runtime: Runtime, settings: Settings, bounds: Bounds) -> ASGIApp:
    """Build the ASGI application: stateless MCP of both protocol eras at /mcp, the routes, those of features, host and origin protection,
    the edge.
    """
    app = mcp.http_app(
        path="/mcp",
        stateless_http=True,
        json_response=True,
        host_origin_protection=True,
        allowed_hosts=settings.host_names,
        # Behind a proxy that ends TLS, the pages' own origin is not the address that is listened on.
        allowed_origins=[settings.oauth.public_url] if settings.oauth.public_url else None,
    )
    calls = ToolCalls(mcp, operations_of(settings.toolsets), ScopeCheck(scope_needs(settings.toolsets)))
    calls.register()
    endpoint = next(route for route in app.routes if isinstance(route, Route) and route.path == "/mcp")
    endpoint.app = PlainCalls(endpoint.app, calls)
    app.state.runtime = runtime
    app.router.lifespan_context = _with_features(app.router.lifespan_context)
    further = [route for feature in features() for route in feature.routes]
    known_paths = {"/mcp", *oauth.PATHS, *(operation.route.path for operation in routes.OPERATIONS if operation.route)}
    known_paths |= {route.path for route in further if isinstance(route, Route)}
    app.state.authenticator = authenticator = Authenticator(runtime, known_paths)
    app.router.routes.extend([*oauth.routes(), *further])
    app.router.routes.extend(Route(path, routes.nowhere, methods=METHODS) for path in ("/api", "/api/{path:path}"))
    if stop := runtime.yield_lock:

        async def leave(_request: Request) -> Response:
            stop()
            return Response(status_code=202)

        app.router.routes.append(Route(YIELD_PATH, leave, methods=["POST"]))
    limiter = ConcurrencyLimiter(lambda: runtime.config.current().calls, part_of)
    app.state.metrics = Metrics(runtime, limiter, authenticator.refusals) if is_installed("metrics") else None
    app.state.edge = edge = Edge(app, authenticator, limiter, bounds, app.state.metrics)
    return edge


def _with_features(lifespan: Callable[[Any], AbstractAsyncContextManager[Any]]) -> Callable[[Any], AbstractAsyncContextManager[Any]]:
    """The lifespan of the application around those of the features."""

    @asynccontextmanager
    async def with_features(app: Starlette) -> AsyncIterator[Any]:
        async with AsyncExitStack() as stack:
            state = await stack.enter_async_context(lifespan(app))
            for feature in features():
                if feature.lifespan:
                    await stack.enter_async_context(feature.lifespan(app))
            yield state

    return with_features


def scope_needs(toolsets: Iterable[str] = tuple(TOOLSETS)) -> Needs:
    """Return the scopes that a token must have, for every tool of these toolsets, every resource, prompt and route.

    Resources and prompts need none: they hold counts, states and the pages of apps, and nothing of what memories say.
    """
    return {
        **{name: operation.needs for name, operation in operations_of(toolsets).items()},
        **{f"memory://{name}": frozenset() for name in resources.RESOURCES},
        **{apps.address(name): frozenset() for name in apps_of(toolsets)},
        **{name: frozenset() for name in instructions.PROMPTS},
        **{operation.route.name: operation.needs for operation in routes.OPERATIONS if operation.route},
    }


def quicken_calls() -> None:
    """Freeze everything that was ever imported: a full garbage collection would walk it, 50-100 ms that are added to one call
    (docs/decisions/0006-server-edge.md)."""
    gc.enable()
    gc.collect()
    gc.freeze()
