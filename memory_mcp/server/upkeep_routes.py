"""The routes of upkeep: the history of a memory, an earlier version of it, and erasing for good."""

from collections.abc import Callable
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from memory_mcp.errors import InvalidInput
from memory_mcp.remember.revise import Revision, revise
from memory_mcp.search.questions import TOKENS_LIMIT
from memory_mcp.server.api_route import ApiRoute, object_of
from memory_mcp.server.request_persona import call_of
from memory_mcp.server.upkeep_views import history_view, purge_view
from memory_mcp.server.views import heading, memory_view
from memory_mcp.text.labels import label


async def history(request: Request) -> Response:
    """A memory's earlier states, and what was done to it."""
    call, key = call_of(request), _key(request.query_params.get("key", ""))

    def told() -> dict[str, Any]:
        with call.reading() as persona:
            return history_view(call, persona, key, TOKENS_LIMIT)

    return await _answered(told)


async def restore(request: Request) -> Response:
    """Lets a memory say again what it said in an earlier revision."""
    asked = await object_of(request, key=str, revision=int, reason=str)
    call, key = call_of(request), _key(asked.get("key", ""))
    if "revision" not in asked:
        raise InvalidInput("revision is missing", "", "Take one that the history shows")

    def told() -> dict[str, Any]:
        with call.changing() as persona:
            wanted = Revision(revision=asked["revision"], reason=label(asked.get("reason"), "reason"))
            memory = revise(persona, key, wanted, now=call.now.astimezone(call.settings.zone), privacy=call.settings.privacy)
            view = memory_view(memory, memory.content, call.settings.zone, call.now)
            return {**heading(call, persona), **view, "revision": memory.revision}

    return await _answered(told)


async def purge(request: Request) -> Response:
    """Lists what would be erased, or erases what was listed."""
    asked = await object_of(request, keys=list, confirm=str, remove_kept=bool)
    call, keys = call_of(request), asked.get("keys", [])
    if not all(isinstance(key, str) for key in keys):
        raise InvalidInput("keys has the wrong type", "", "Send a list of strings")

    def told() -> dict[str, Any]:
        with call.changing() as persona:
            return purge_view(call, persona, keys, asked.get("confirm", ""), asked.get("remove_kept", False))

    return await _answered(told)


async def _answered(told: Callable[[], dict[str, Any]]) -> Response:
    return JSONResponse(await run_in_threadpool(told))


def _key(key: str) -> str:
    if not key:
        raise InvalidInput("key is missing", "", "Take it from a recall")
    return key


ROUTES = (
    ApiRoute("/api/history", "GET", history, frozenset({"read"})),
    ApiRoute("/api/restore", "POST", restore, frozenset({"read", "write"})),
    ApiRoute("/api/purge", "POST", purge, frozenset({"delete", "admin"})),
)
