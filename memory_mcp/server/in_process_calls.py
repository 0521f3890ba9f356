"""Calls of conversations in this process, which come back to the server like any client's, with the rights of the visitor's token."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

import httpx2
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from memory_mcp.server.addressing import HEADER
from memory_mcp.server.auth import ON_BEHALF, Admission, Authenticator
from memory_mcp.server.conversing import Transports

# Longer than any call takes.
ANSWER_SECONDS = 300.0


def transports(request: Request, admission: Admission, personas: Sequence[str]) -> Transports:
    """Ways for MCP clients to this server as each of these personas, with the rights of a request's token, through the same checks as
    from outside.
    """
    from fastmcp.client.transports import StreamableHttpTransport  # noqa: PLC0415  a quarter of a second that a server without conversations saves

    edge: ASGIApp = request.app.state.edge
    client = request.client or ("127.0.0.1", 0)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await edge({**scope, ON_BEHALF: admission.token}, receive, send)

    def http(
        headers: dict[str, str] | None = None, timeout: httpx2.Timeout | None = None, auth: httpx2.Auth | None = None, **_options: Any
    ) -> httpx2.AsyncClient:
        inside = httpx2.ASGITransport(app=app, client=(client[0], client[1]))
        return httpx2.AsyncClient(transport=inside, headers=headers, auth=auth, timeout=timeout or ANSWER_SECONDS)

    def transport(persona: str) -> StreamableHttpTransport:
        return StreamableHttpTransport("http://127.0.0.1/mcp", headers={HEADER: quote(persona)}, httpx_client_factory=http)

    return {persona: lambda persona=persona: transport(persona) for persona in personas}  # type: ignore[misc]  # mypy knows no default


async def admitted_now(request: Request, admission: Admission) -> Admission:
    """The current rights of the token of a request that takes minutes.

    Raises:
        TokenRefused: it is not good any more.
    """
    authenticator: Authenticator = request.app.state.authenticator
    return await authenticator.admit({**request.scope, ON_BEHALF: admission.token})
