"""What the gateway brings to the server."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette

from memory_mcp.features.gateway.calls import BODY_LIMIT_BYTES, CHAT, PREFIX, ROUTES
from memory_mcp.features.gateway.refusals import refusal
from memory_mcp.features.gateway.spending import Spending
from memory_mcp.features.gateway.upstream import Upstream
from memory_mcp.server.feature import Feature


@asynccontextmanager
async def _lifespan(app: Starlette) -> AsyncIterator[None]:
    app.state.upstream, app.state.spending = Upstream(), Spending()
    try:
        yield
    finally:
        await app.state.upstream.close()


FEATURE = Feature(
    routes=ROUTES,
    work=(PREFIX,),
    streams={CHAT: "conversation"},
    body_limits={CHAT: BODY_LIMIT_BYTES},
    wires={PREFIX: refusal},
    lifespan=_lifespan,
)
