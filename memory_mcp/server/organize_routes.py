"""`GET` and `POST /api/organize`: what could be tidied, and merging or undoing it. The work is done on worker threads."""

import json
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from memory_mcp.errors import InvalidInput
from memory_mcp.server import organize_views
from memory_mcp.server.api_route import whole_number
from memory_mcp.server.request_persona import call_of

BODY_LIMIT_BYTES = 64 * 1024
_FIELDS = ("merge", "into", "undo", "reason")


async def proposals(request: Request) -> Response:
    """What could be tidied."""
    call, shown = call_of(request), whole_number(request, "top_k", f"it is a number from 1 to {organize_views.SHOWN_LIMIT}")
    return JSONResponse(await run_in_threadpool(organize_views.listing, call, shown))


async def tidy(request: Request) -> Response:
    """Merges or undoes, as the JSON object in the body says."""
    call, told = call_of(request), _checked(await _body(request))
    done = await run_in_threadpool(
        organize_views.organized, call, told.get("into", ""), told.get("merge", []), told.get("undo", ""), told.get("reason", ""), None
    )
    return JSONResponse(done)


async def _body(request: Request) -> bytes:
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > BODY_LIMIT_BYTES:
            raise InvalidInput("the body is too long", f"{BODY_LIMIT_BYTES // 1024} KiB are the limit", "Send fewer keys")
    return body


def _checked(body: bytes) -> dict[str, Any]:
    try:
        told = json.loads(body)
        json.dumps(told, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict):
        raise InvalidInput("the body is no JSON object", "", 'Send {"merge": ["…"], "into": "…"} or {"undo": "…"}')
    for name, value in told.items():
        if name not in _FIELDS:
            raise InvalidInput(f"unknown field {name[:80]!r}", f"known are {', '.join(_FIELDS)}", "Leave it out")
        if not (_is_texts(value) if name == "merge" else isinstance(value, str)):
            raise InvalidInput(f"{name} has the wrong type", "merge is a list of keys, the others are strings", "Correct it")
    if not (told.get("merge") or told.get("undo", "").strip()):
        raise InvalidInput("nothing to do", "neither merge nor undo was given", 'Send {"merge": ["…"], "into": "…"} or {"undo": "…"}')
    return told


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(entry, str) for entry in value)
