"""Conversations that run in this process: what the server is handed to run them, and how their calls come back to it like any client's."""

import asyncio
import secrets
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import quote

import httpx2
from fastmcp.client.transports import StreamableHttpTransport
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from memory_mcp.server.auth import ON_BEHALF, Admission, Authenticator
from memory_mcp.server.call import HEADER
from memory_mcp.server.operation import Json

Transports = Mapping[str, Callable[[], StreamableHttpTransport]]
# Longer than any call takes.
ANSWER_SECONDS = 300.0


class RunningTurn(Protocol):
    """A turn of a conversation. Closing its events ends it."""

    def events(self, text: str, *, off_record: bool = False) -> AsyncGenerator[Json]:
        """What happens; if all has ended well, the last event is `said`."""

    def answer(self, call_id: str, allowed: bool) -> None:
        """Answer the question whether a tool may run. Call it on the event loop."""


class Conversing(Protocol):
    """What runs conversations."""

    def vendors(self) -> list[Json]:
        """The vendors of models: `name`, `models` that are known of it, and `why` it can't be asked."""

    def turn(self, model: str, transports: Transports, messages: Mapping[str, Sequence[Json]], **options: Any) -> RunningTurn:
        """Prepare a turn. Takes seconds at the first one, of a vendor's package."""


def transports(request: Request, admission: Admission, personas: Sequence[str]) -> Transports:
    """Ways for MCP clients to this server as each of these personas, with the rights of a request's token, through the same checks as from outside."""
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
    """What the token of a request that takes minutes allows now.

    Raises:
        TokenRefused: it is not good any more.
    """
    authenticator: Authenticator = request.app.state.authenticator
    return await authenticator.admit({**request.scope, ON_BEHALF: admission.token})


@dataclass(frozen=True, slots=True)
class _Run:
    turn: RunningTurn
    token: str | None
    task: asyncio.Task[None]


class Runs:
    """The turns that run, by ids that only who began them knows."""

    def __init__(self) -> None:
        self._runs: dict[str, _Run] = {}

    def begin(self, turn: RunningTurn, token: str | None, work: Callable[[str], Any]) -> asyncio.Task[None]:
        """Start the task of a turn, which gets its id."""
        identity = secrets.token_urlsafe(16)
        task: asyncio.Task[None] = asyncio.create_task(work(identity))
        self._runs[identity] = _Run(turn, token, task)
        task.add_done_callback(lambda _: self._runs.pop(identity))
        return task

    def answer(self, identity: str, token: str | None, call_id: str, *, allowed: bool) -> bool:
        """Answer a question of a turn. Returns whether such a turn of this token runs. Call it on the event loop."""
        run = self._runs.get(identity)
        if run is None or run.token != token:
            return False
        run.turn.answer(call_id, allowed)
        return True
